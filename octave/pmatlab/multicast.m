## data = multicast (src, dsts, data): rank src sends a value to the ranks dsts, along a tree. Only these ranks need
## call it; the value is returned on all of them.
function data = multicast (src, dsts, data = [])
  ranks = [src, setdiff(dsts(:)', src)];
  place = find (ranks == Pid ()) - 1;
  if (isempty (place))
    return;
  endif
  ## In round k the first 2^(k-1) of the ranks have the value, and send it to as many further ones.
  for k = 2 .^ (0:nextpow2 (numel (ranks)) - 1)
    if (place < k && place + k < numel (ranks))
      __pmatlab_swap__ ({data}, ranks(place+k+1), []);
    elseif (place >= k && place < 2 * k)
      data = __pmatlab_swap__ ({}, [], ranks(place-k+1)){1};
    endif
  endfor
endfunction
