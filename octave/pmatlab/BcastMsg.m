## [v1, ...] = BcastMsg (src, tag, v1, ...): rank src sends values to all ranks. All ranks call it.
function varargout = BcastMsg (src, tag, varargin)
  global pMATLAB
  if (Pid () == src)
    MPI_Bcast (src, tag, pMATLAB.comm, varargin);
    varargout = varargin;
  else
    varargout = pm_message (MPI_Recv (src, tag, pMATLAB.comm), nargout, src, tag);
  endif
endfunction
