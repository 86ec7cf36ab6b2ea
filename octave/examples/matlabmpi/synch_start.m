% synch_start: all ranks go on at the same time, start_delay seconds from now (1 if it is not set). A script for scripts
% that have comm and my_rank. Rank 0 says when; the clocks of the machines must agree.

if ~exist('start_delay', 'var')
    start_delay = 1;
end
if my_rank == 0
    start_time = now + start_delay / 86400;
    MPI_Bcast(0, 100045, comm, start_time);
else
    start_time = MPI_Recv(0, 100045, comm);
end
pause(max(0, (start_time - now) * 86400));
