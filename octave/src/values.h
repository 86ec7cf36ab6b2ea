// Octave values as bytes, and back.
//
// A message is an envelope of fixed length and a body:
//
//   bytes   envelope
//   0-3     "LOV1": the format and its version
//   4       class of the value (`Class`)
//   5       flags (`complex_flag` ...)
//   6       number of dimensions of a dense value, at most 4
//   7       mark: free for the sender
//   8-15    length of the body
//   16-47   the dimensions
//
// The body of a dense value (numbers, characters, logical values with up to 4 dimensions) is the array as it lies in
// memory. So it is sent from the sender's array and received into the memory of the new one: nothing is copied in
// between. Any other value is encoded (`Class::encoded`): its body is a tree of items, each with a class and flags of
// its own. All numbers are in the byte order of the machine.
//
// What cannot be sent is the Octave error `limosa:class`. Bytes that no sender has made are the error `limosa:damaged`:
// every length is checked against what is there before memory is allocated.

#ifndef LIMOSA_VALUES_H
#define LIMOSA_VALUES_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <octave/oct.h>

namespace limosa
{
// The first result of a function of Octave, by name or handle; undefined if it has none. While a program ignores
// results
// (`[~, x] = ...`), Octave would ignore those of functions that are called meanwhile, too.
octave_value result_of(const octave_value &function, const octave_value_list &arguments);

// Memory that an Octave array can take over.
struct Free {
    void operator()(char *memory) const
    {
        ::operator delete(memory);
    }
};
using Memory = std::unique_ptr<char, Free>;

// What a value, or an item of an encoded value, is. The numbers are part of the format.
enum class Class : std::uint8_t {
    double_ = 1,
    single_,
    int8_,
    int16_,
    int32_,
    int64_,
    uint8_,
    uint16_,
    uint32_,
    uint64_,
    logical_,
    char_,
    sparse = 32,
    cell,
    struct_array,
    struct_scalar,
    named_function,
    anonymous_function,
    object,
    map,
    encoded = 64
};

constexpr std::uint8_t complex_flag = 1;       // of double_, single_ and sparse
constexpr std::uint8_t double_quoted_flag = 2; // of char_
constexpr std::uint8_t logical_flag = 4;       // of sparse
constexpr std::uint8_t apart_flag = 128;       // the body comes as a message of its own

constexpr std::size_t envelope_bytes = 48;

// A view of a dense array: real or complex numbers, characters or logical values.
struct Dense {
    Class cls;
    std::uint8_t flags;
    dim_vector dims;
    std::size_t elements;
    std::size_t element_bytes;   // of a complex number: of both parts
    const void *array = nullptr; // lies in `owner`; null: the only element is in `scalar`
    octave_value owner;
    alignas(16) char scalar[16];

    const void *data() const
    {
        return array ? array : scalar;
    }
    std::size_t bytes() const
    {
        return elements * element_bytes;
    }
};

// Looks at a value as dense; ranges, diagonal and permutation matrices are expanded. False if it is not dense.
bool dense(const octave_value &value, Dense &view);

// Memory for a new array, which the caller fills; `value` then makes the array of it without a copy. It is not
// initialised: the caller writes all of it.
class Fresh
{
  public:
    Fresh(Class cls, std::uint8_t flags, const dim_vector &dims);

    void *data()
    {
        return m_data.get();
    }
    octave_value value();

  private:
    Class m_class;
    std::uint8_t m_flags;
    dim_vector m_dims;
    Memory m_data;
};

// A value ready to be sent. It holds the value, so its body stays where it is as long as the message lives.
class Message
{
  public:
    explicit Message(const octave_value &value, std::uint8_t mark = 0);

    const char *envelope() const
    {
        return m_envelope;
    }
    const char *body() const
    {
        return m_body;
    }
    std::size_t body_bytes() const
    {
        return m_body_bytes;
    }
    std::size_t bytes() const
    {
        return envelope_bytes + m_body_bytes;
    }
    void copy_to(char *to) const;

    // The array of a dense message of several elements, to be used in place of what would be received. Undefined for
    // any other message.
    octave_value dense_value() const
    {
        return m_encoded.empty() && m_dense.array ? m_dense.owner : octave_value();
    }

    Message(const Message &) = delete;
    Message &operator=(const Message &) = delete;

  private:
    char m_envelope[envelope_bytes];
    const char *m_body;
    std::size_t m_body_bytes;
    Dense m_dense;         // a dense body
    std::string m_encoded; // any other
};

// Room for a message of this length (envelope and body). Once both are filled, `value` gives what was sent; a dense
// value takes over the memory of the body.
class Arrival
{
  public:
    explicit Arrival(std::size_t bytes);

    char *envelope()
    {
        return m_envelope;
    }
    char *body()
    {
        return m_body.get();
    }
    std::size_t body_bytes() const
    {
        return m_body_bytes;
    }
    std::uint8_t mark() const
    {
        return static_cast<std::uint8_t>(m_envelope[7]);
    }
    octave_value value();

    // How long the body is, by an envelope that has come alone.
    static std::size_t announced(const char *envelope);

  private:
    char m_envelope[envelope_bytes];
    Memory m_body;
    std::size_t m_body_bytes;
};

// The value of a whole message (envelope and body) that lies in memory that is not its own.
octave_value decode(const char *bytes, std::size_t length, std::uint8_t *mark = nullptr);
} // namespace limosa

#endif
