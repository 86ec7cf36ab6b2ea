## R = CFARFindTarg (C, T): the squares of the elements in relation to the noise around them (see CFARNoiseEst).
function R = CFARFindTarg (C, T)
  R = rdivide (times (C, C), T);
endfunction
