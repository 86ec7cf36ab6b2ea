## values = pm_message (values, wanted, src, tag): checks that a message of SendMsg has as many values as are wanted.
function values = pm_message (values, wanted, src, tag)
  if (! iscell (values))
    error ("pMatlab:message", "RecvMsg: the message of rank %d with tag %s was not sent by SendMsg or BcastMsg; hint: \
receive it with MPI_Recv", src, num2str (tag));
  endif
  if (numel (values) < wanted)
    error ("pMatlab:message", "RecvMsg: the message of rank %d with tag %s has %d values, but %d are received", src, ...
           num2str (tag), numel (values), wanted);
  endif
endfunction
