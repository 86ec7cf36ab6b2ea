% multi_basic: what basic does, there and back, three times with a tag each. For 2 ranks or more.

MPI_Init;
comm = MPI_COMM_WORLD;
my_rank = MPI_Comm_rank(comm);
if MPI_Comm_size(comm) < 2
    error('multi_basic: start it on 2 ranks or more');
end

tag = 10000;
for trial = 1:3
    tag = tag + 1;
    numbers = trial * (1:1000);
    settings = struct('trial', trial, 'name', {{'any', 'class'}});
    if my_rank == 1
        MPI_Send(0, tag, comm, numbers, settings);
        back = MPI_Recv(0, tag, comm);
        if back ~= sum(numbers)
            error('multi_basic: rank 1 got %g back in trial %d', back, trial);
        end
    elseif my_rank == 0
        [got_numbers, got_settings] = MPI_Recv(1, tag, comm);
        if ~isequal(got_numbers, numbers) || ~isequal(got_settings, settings)
            error('multi_basic: rank 0 got something else in trial %d', trial);
        end
        MPI_Send(1, tag, comm, sum(got_numbers));
    end
end

disp('SUCCESS');
MPI_Finalize;
