// philox.h: random numbers by their number, the same as numpy.random.Philox (key=seed) gives.
//
// The generator is that of J. K. Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (SC'11): four words
// of 64 bits from a counter and a key, by ten rounds of multiplications. It has no state: number n is made on its own.

#pragma once

#include <cstdint>

namespace limosa
{
// Word number n of the stream of a seed.
inline std::uint64_t philox(std::uint64_t seed, std::uint64_t n)
{
    using Word = std::uint64_t;
    using Wide = unsigned __int128;
    const Word multipliers[2] = {0xD2E7470EE14C6C93, 0xCA5A826395121157};
    const Word weyl[2] = {0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B};
    Word counter[4] = {n / 4 + 1, 0, 0, 0}, key[2] = {seed, 0}; // the counter is advanced before the first words
    for (int round = 0; round < 10; round++) {
        Wide a = Wide(multipliers[0]) * counter[0], b = Wide(multipliers[1]) * counter[2];
        Word next[4] = {Word(b >> 64) ^ counter[1] ^ key[0], Word(b), Word(a >> 64) ^ counter[3] ^ key[1], Word(a)};
        for (int i = 0; i < 4; i++)
            counter[i] = next[i];
        for (int i = 0; i < 2; i++)
            key[i] += weyl[i];
    }
    return counter[n % 4];
}
} // namespace limosa
