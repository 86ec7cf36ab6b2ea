% probe: rank 0 receives whatever MPI_Probe finds, from any rank, until all has come. For 2 ranks or more.

MPI_Init;
comm = MPI_COMM_WORLD;
comm_size = MPI_Comm_size(comm);
my_rank = MPI_Comm_rank(comm);
if comm_size < 2
    error('probe: start it on 2 ranks or more');
end

messages = 4; % of each rank
if my_rank > 0
    for k = 1:messages
        MPI_Send(0, 1000 * my_rank + k, comm, my_rank, k);
    end
    MPI_Send(0, 'last', comm, 'a tag may be a text');
else
    seen = zeros(comm_size - 1, messages);
    while any(seen(:) == 0)
        [ranks, tags] = MPI_Probe('*', '*', comm);
        for k = 1:length(ranks)
            [from, number] = MPI_Recv(ranks(k), tags(k), comm);
            if from ~= ranks(k) || tags(k) ~= 1000 * from + number
                error('probe: the message of rank %d with tag %d came as that of rank %d', from, number, ranks(k));
            end
            seen(from, number) = seen(from, number) + 1;
        end
    end
    for from = 1:comm_size - 1
        MPI_Recv(from, 'last', comm);
    end
    [ranks, tags, texts] = MPI_Probe('*', '*', comm);
    if any(seen(:) ~= 1) || ~isempty(texts)
        error('probe: a message came twice or was left');
    end
end

disp('SUCCESS');
MPI_Finalize;
