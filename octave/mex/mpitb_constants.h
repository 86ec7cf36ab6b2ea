// How mpitb_constants.cc defines MPI's constants in the MEX file: each is a row of the table of mpitb.cc.

#if !defined(LIMOSA_MEX_CONSTANTS_H)
#define LIMOSA_MEX_CONSTANTS_H 1

#include <cstdint>

namespace limosa
{
namespace mpitb
{
// Makes a constant known by its name; the value is a number, a handle or a text.
struct Constant {
    Constant(const char *name, double number);
    Constant(const char *name, std::uint64_t handle);
    Constant(const char *name, const char *text);
};
} // namespace mpitb
} // namespace limosa

#define MPITB_HANDLE(BITS) UINT64_C(BITS)
#define MPITB_CONSTANT(NAME, VALUE) static const limosa::mpitb::Constant constant_##NAME(#NAME, VALUE);

#endif
