## Before `pkg install` compiles and copies: what an installed package has lies below inst/.

function pre_install (description)
  for name = {"run", "matlabmpi", "mpi", "mpitb", "pmatlab"}
    if (exist (name{1}, "dir"))
      [done, message] = copyfile (name{1}, "inst");
      if (! done)
        error ("limosa: %s cannot be copied: %s", name{1}, message);
      endif
    endif
  endfor
endfunction
