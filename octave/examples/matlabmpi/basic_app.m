% basic_app: work that is dealt to the ranks in equal blocks before it starts. Rank 0 broadcasts the parameters, each
% rank integrates 4/(1+x^2) over its own part of [0,1], and rank 0 adds up. For 2 ranks or more.

MPI_Init;
comm = MPI_COMM_WORLD;
comm_size = MPI_Comm_size(comm);
my_rank = MPI_Comm_rank(comm);
if comm_size < 2
    error('basic_app: start it on 2 ranks or more');
end
coefs_tag = 10000;
result_tag = 20000;

if my_rank == 0
    parameters = struct('intervals', 100000, 'width', 1 / 100000);
    MPI_Bcast(0, coefs_tag, comm, parameters);
else
    parameters = MPI_Recv(0, coefs_tag, comm);
end
bounds = round((0:comm_size) * parameters.intervals / comm_size);
x = ((bounds(my_rank + 1):bounds(my_rank + 2) - 1) + 0.5) * parameters.width;
result = sum(4 ./ (1 + x.^2)) * parameters.width;

if my_rank > 0
    MPI_Send(0, result_tag + my_rank, comm, result);
else
    for from = 1:comm_size - 1
        result = result + MPI_Recv(from, result_tag + from, comm);
    end
    if abs(result - pi) > 1e-9
        error('basic_app: pi is not %.12f', result);
    end
end

disp('SUCCESS');
MPI_Finalize;
