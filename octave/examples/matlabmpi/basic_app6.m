% basic_app6: a farm in which rank 0 has sent all work before it looks for results. A worker takes the piece with the
% smallest tag of those that wait for it. For 2 ranks or more.

UseGraphics = 0;
MPI_Init;
comm = MPI_COMM_WORLD;
comm_size = MPI_Comm_size(comm);
my_rank = MPI_Comm_rank(comm);
if comm_size < 2
    error('basic_app6: start it on 2 ranks or more');
end
n_pieces = 24;
last_tag = 999999;

if my_rank == 0
    for piece = 1:n_pieces
        MPI_Send(1 + mod(piece, comm_size - 1), piece, comm, piece * ones(1, 5));
    end
    MPI_Bcast(0, last_tag, comm, []);
    sums = zeros(1, n_pieces);
    done = 0;
    while done < n_pieces
        [ranks, tags] = MPI_Probe('*', '*', comm);
        for k = 1:length(ranks)
            sums(tags(k)) = MPI_Recv(ranks(k), tags(k), comm);
            done = done + 1;
        end
    end
    if ~isequal(sums, 5 * (1:n_pieces))
        error('basic_app6: a sum is wrong or missing');
    end
    if UseGraphics
        bar(sums);
    end
else
    last = 0;
    while true
        [ranks, tags] = MPI_Probe(0, '*', comm);
        if isempty(tags)
            continue;
        end
        tag = min(tags);
        if tag == last_tag
            MPI_Recv(0, tag, comm);
            break;
        end
        row = MPI_Recv(0, tag, comm);
        MPI_Send(0, tag, comm, sum(row));
    end
end

disp('SUCCESS');
MPI_Finalize;
