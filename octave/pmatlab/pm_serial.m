## pm_serial (): makes the global pMATLAB that of a program of one rank.
function pm_serial ()
  global pMATLAB
  __pmatlab_conditions__ ();
  evalin ("base", "global pMATLAB");  # programs use it without saying so
  pMATLAB = struct ("comm", [], "comm_size", 1, "my_rank", 0, "leader", 0, "host", 0, "pList", 0, ...
                    "tag_num", 0, "tag", "tag-0");
endfunction
