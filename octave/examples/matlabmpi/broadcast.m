% broadcast: rank 0 broadcasts two variables; the others receive them as any message. For 2 ranks or more.

MPI_Init;
comm = MPI_COMM_WORLD;
my_rank = MPI_Comm_rank(comm);
if MPI_Comm_size(comm) < 2
    error('broadcast: start it on 2 ranks or more');
end

tag = 1;
values = (1:10000) / 3;
if my_rank == 0
    [A, B] = MPI_Bcast(0, tag, comm, values, 'and a text');
else
    [A, B] = MPI_Recv(0, tag, comm);
end
if ~isequal(A, values) || ~strcmp(B, 'and a text')
    error('broadcast: rank %d has got something else', my_rank);
end

% All ranks may also make the same call.
tag = tag + 1;
A = MPI_Bcast(1, tag, comm, my_rank);
if A ~= 1
    error('broadcast: rank %d has %g instead of what rank 1 gave', my_rank, A);
end

disp('SUCCESS');
MPI_Finalize;
