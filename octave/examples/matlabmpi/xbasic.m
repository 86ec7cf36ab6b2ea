% xbasic: each rank prints its number. For any number of ranks:
%
%   eval(MPI_Run('xbasic', 4, {}))                    from Octave
%   limosa run -n 4 --dialect matlabmpi xbasic.m      from a shell

MPI_Init;
comm = MPI_COMM_WORLD;
comm_size = MPI_Comm_size(comm);
my_rank = MPI_Comm_rank(comm);
disp(sprintf('rank %d of %d', my_rank, comm_size));
if my_rank < 0 || my_rank >= comm_size
    error('xbasic: there is no rank %d among %d', my_rank, comm_size);
end

disp('SUCCESS');
MPI_Finalize;
