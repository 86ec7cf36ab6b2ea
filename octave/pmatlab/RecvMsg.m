## [v1, ...] = RecvMsg (src, tag): receives what SendMsg or BcastMsg has sent.
function varargout = RecvMsg (src, tag)
  global pMATLAB
  varargout = pm_message (MPI_Recv (src, tag, pMATLAB.comm), nargout, src, tag);
endfunction
