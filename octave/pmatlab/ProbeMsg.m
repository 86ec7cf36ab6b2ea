## [ranks, tags, texts] = ProbeMsg (src, tag): the messages that have arrived, see MPI_Probe; either may be '*'.
function [ranks, tags, texts] = ProbeMsg (src, tag)
  global pMATLAB
  if (nargout < 3)
    [ranks, tags] = MPI_Probe (src, tag, pMATLAB.comm);
  else
    [ranks, tags, texts] = MPI_Probe (src, tag, pMATLAB.comm);
  endif
endfunction
