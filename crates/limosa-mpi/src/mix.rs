//! One word of two, for names that all ranks compute alike without a message.

/// Mixes two words into one so that every bit of both reaches every bit of the result: an addition of a multiple of the
/// golden ratio, which keeps small inputs apart, then the finishing rounds known from SplitMix64. For a fixed `state`
/// different words give different results.
pub fn mix(state: u64, word: u64) -> u64 {
    let mut x = state.rotate_left(29) ^ word.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
