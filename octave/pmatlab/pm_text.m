## text = pm_text (numbers): numbers for a message, as in [4 1].
function text = pm_text (numbers)
  if (isnumeric (numbers) || islogical (numbers))
    text = ["[" strjoin(arrayfun (@(n) sprintf ("%g", n), double (numbers(:)'), "UniformOutput", false), " ") "]"];
  else
    text = ["a " class(numbers)];
  endif
endfunction
