% basic: rank 1 sends two variables to rank 0, which checks them. For 2 ranks or more.

MPI_Init;
comm = MPI_COMM_WORLD;
my_rank = MPI_Comm_rank(comm);
if MPI_Comm_size(comm) < 2
    error('basic: start it on 2 ranks or more');
end

tag = 1;
numbers = 1:10;
text = 'two variables in one message';
if my_rank == 1
    MPI_Send(0, tag, comm, numbers, text);
elseif my_rank == 0
    [got_numbers, got_text] = MPI_Recv(1, tag, comm);
    if ~isequal(got_numbers, numbers) || ~strcmp(got_text, text)
        error('basic: what came is not what was sent');
    end
end

disp('SUCCESS');
MPI_Finalize;
