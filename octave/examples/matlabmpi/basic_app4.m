% basic_app4: a farm. Each worker says that it is idle, and gets the next piece of work; rank 0 finds out by MPI_Probe
% which worker is idle. For 2 ranks or more.

MPI_Init;
comm = MPI_COMM_WORLD;
comm_size = MPI_Comm_size(comm);
my_rank = MPI_Comm_rank(comm);
if comm_size < 2
    error('basic_app4: start it on 2 ranks or more');
end
n_pieces = 25;
work_tag = 999999;
result_tag = 1;

if my_rank == 0
    found = nan(1, n_pieces);
    next = 1;
    for k = 1:comm_size - 1 + n_pieces
        ranks = [];
        while isempty(ranks)
            [ranks, tags] = MPI_Probe('*', result_tag, comm);
        end
        [piece, value] = MPI_Recv(ranks(1), tags(1), comm);
        if piece > 0
            found(piece) = value;
        end
        MPI_Send(ranks(1), work_tag, comm, next * (next <= n_pieces));
        next = next + 1;
    end
    if ~isequal(found, (1:n_pieces).^2)
        error('basic_app4: a result is wrong or missing');
    end
else
    piece = 0;
    value = 0;
    while true
        MPI_Send(0, result_tag, comm, piece, value);
        piece = MPI_Recv(0, work_tag, comm);
        if piece == 0
            break;
        end
        value = piece^2;
    end
end

disp('SUCCESS');
MPI_Finalize;
