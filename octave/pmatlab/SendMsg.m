## SendMsg (dest, tag, v1, ...): sends values to a rank, or to several ones. The tag is a number or a text. Received
## with RecvMsg (Pid of the sender, tag). To one rank it returns at once; to several ones when they have received it.
function SendMsg (dest, tag, varargin)
  global pMATLAB
  if (isscalar (dest))
    MPI_Send (dest, tag, pMATLAB.comm, varargin);
  else
    MPI_Mcast (Pid (), dest, tag, pMATLAB.comm, varargin);
  endif
endfunction
