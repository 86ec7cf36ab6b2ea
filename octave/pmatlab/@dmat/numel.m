## n = numel (X): the number of elements of the whole array.
##
## Octave asks for it, too, before it carries out X.local = L, and wants to hear 1 then: X is one object. It asks
## without the text of an argument, as does cellfun (@numel, {X}).
function n = numel (X, varargin)
  n = 1;
  try
    texts = __varval__ (".argn.");  # what inputname reads, by a slow detour through evalin
  catch
    texts = inputname (1, false);
  end_try_catch
  if (! isempty (texts))
    n = prod (X.shape);
  endif
endfunction
