% basic_app5: a farm whose workers see by MPI_Probe what comes first: parameters, which rank 0 broadcasts, work, or the
% end. Rank 0 gives each worker the next piece when a result has come. For 2 ranks or more.

UseGraphics = 0;
MPI_Init;
comm = MPI_COMM_WORLD;
comm_size = MPI_Comm_size(comm);
my_rank = MPI_Comm_rank(comm);
if comm_size < 2
    error('basic_app5: start it on 2 ranks or more');
end
n_pieces = 30;
parameter_tag = 1;
end_tag = 2;
work_tag = 1000;
result_tag = 50000;

if my_rank == 0
    MPI_Bcast(0, parameter_tag, comm, 3);
    picture = zeros(n_pieces, 8);
    next = 1;
    while next <= min(n_pieces, comm_size - 1)
        MPI_Send(next, work_tag + next, comm, 1:8);
        next = next + 1;
    end
    done = 0;
    while done < n_pieces
        [ranks, tags] = MPI_Probe('*', '*', comm);
        for k = 1:length(ranks)
            picture(tags(k) - result_tag, :) = MPI_Recv(ranks(k), tags(k), comm);
            done = done + 1;
            if next <= n_pieces
                MPI_Send(ranks(k), work_tag + next, comm, 1:8);
                next = next + 1;
            end
        end
    end
    MPI_Bcast(0, end_tag, comm, 'no more work');
    if ~isequal(picture, 3 * (1:n_pieces)' * (1:8))
        error('basic_app5: a row is wrong or missing');
    end
    if UseGraphics
        imagesc(picture);
    end
else
    has_ended = false;
    while ~has_ended
        [ranks, tags] = MPI_Probe('*', '*', comm);
        tags = sort(tags);
        if isempty(tags)
            continue;
        elseif tags(1) == parameter_tag
            factor = MPI_Recv(0, parameter_tag, comm);
        elseif tags(1) == end_tag
            MPI_Recv(0, end_tag, comm);
            has_ended = true;
        else
            row = MPI_Recv(0, tags(1), comm);
            piece = tags(1) - work_tag;
            MPI_Send(0, result_tag + piece, comm, factor * piece * row);
        end
    end
end

disp('SUCCESS');
MPI_Finalize;
