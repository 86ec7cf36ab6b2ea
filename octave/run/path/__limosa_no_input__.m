## The debugger has stopped this rank and asks for a line, but standard input has ended: reports where, and ends the
## job. Octave would show its prompt for ever.

function __limosa_no_input__ ()
  text = ["stopped in the debugger (keyboard, or a breakpoint), but this rank has no standard input to take commands " ...
          "from; debug in a session of limosa shell --octave, or on the rank that limosa run --stdin names"];
  __limosa_uncaught__ (struct ("message", text, "identifier", "limosa:no_input", "stack", dbstack (1)));
endfunction
