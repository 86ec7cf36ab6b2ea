% speedtest: how fast messages of 2 to 2^20 numbers go round a ring of all ranks. For 2 ranks or more.
%
% Each rank keeps its times in speedtest.RANK.mat: the variables n_bytes, seconds (a row for each length, a column for
% each trial) and bandwidth.

MPI_Init;
comm = MPI_COMM_WORLD;
comm_size = MPI_Comm_size(comm);
my_rank = MPI_Comm_rank(comm);
if comm_size < 2
    error('speedtest: start it on 2 ranks or more');
end
right = mod(my_rank + 1, comm_size);
left = mod(my_rank - 1, comm_size);

n_trials = 4;
n_lengths = 20;
seconds = zeros(n_lengths, n_trials);
n_bytes = 8 * 2 .^ (1:n_lengths)';
tag = 99999;
for trial = 1:n_trials
    for k = 1:n_lengths
        tag = tag + 1;
        A = my_rank + (1:2^k);
        start = tic;
        MPI_Send(right, tag, comm, A);
        B = MPI_Recv(left, tag, comm);
        seconds(k, trial) = toc(start);
        if ~isequal(B, left + (1:2^k))
            error('speedtest: rank %d has got something else from rank %d', my_rank, left);
        end
    end
end
bandwidth = 2 * n_bytes ./ min(seconds, [], 2); % both directions
save(sprintf('speedtest.%d.mat', my_rank), 'n_bytes', 'seconds', 'bandwidth');
disp(sprintf('rank %d: %.3g s for 16 bytes, %.3g bytes/s for 8 MB', my_rank, min(seconds(1, :)), bandwidth(end)));

disp('SUCCESS');
MPI_Finalize;
