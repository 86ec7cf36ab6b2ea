// Lines that the program asks the user for: `input`, `keyboard`, and Octave's debugger at a breakpoint.

#ifndef LIMOSA_INPUT_H
#define LIMOSA_INPUT_H

#include <functional>
#include <string>

namespace limosa
{
// Gives the next line, with its end; an empty text if there is none. `is_debugger` says that the debugger asks: it
// would ask for ever if it got none.
using LineSource = std::function<std::string(bool is_debugger)>;

// Has Octave take its lines from here.
void set_line_source(LineSource source);
} // namespace limosa

#endif
