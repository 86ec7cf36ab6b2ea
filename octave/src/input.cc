// Lines that the program asks the user for: see input.h.

#include "input.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <octave/cmd-edit.h>
#include <octave/interpreter.h>
#include <octave/pager.h>
#include <octave/pt-eval.h>

namespace limosa
{
namespace
{
LineSource &source()
{
    static auto &source = *new LineSource;
    return source;
}

// The read function of the stream that Octave reads lines from. It reports no end of the file, which a stream would
// remember, but an error.
ssize_t read_line(void *, char *buffer, std::size_t size)
{
    static auto &rest = *new std::string;
    if (rest.empty()) {
        octave_stdout.flush();
        rest = source()(octave::interpreter::the_interpreter()->get_evaluator().in_debug_repl());
    }
    if (rest.empty()) {
        errno = EIO;
        return -1;
    }
    const std::size_t length = std::min(size, rest.size());
    std::memcpy(buffer, rest.data(), length);
    rest.erase(0, length);
    return length;
}
} // namespace

void set_line_source(LineSource given)
{
    source() = std::move(given);
    static FILE *const stream = fopencookie(nullptr, "r", {read_line, nullptr, nullptr, nullptr});
    if (stream)
        octave::command_editor::set_input_stream(stream);
}
} // namespace limosa
