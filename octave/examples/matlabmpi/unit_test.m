% unit_test: run the other programs of this folder with all ranks in the background, and count those whose output says
% SUCCESS. The variable cpus holds the machines, such as {'thishost&'}; without it all run on this one.

if ~exist('cpus', 'var')
    cpus = {[gethostname '&']};
end
programs = {'xbasic', 'basic', 'multi_basic', 'probe', 'broadcast', 'basic_app', 'basic_app2', 'basic_app3', ...
            'basic_app4', 'basic_app5', 'basic_app6', 'blurimage', 'speedtest'};
n_ranks = 4;
failed = {};
for k = 1:length(programs)
    MPI_Run(programs{k}, n_ranks, cpus);
    n_done = 0;
    n_ended = 0;
    while n_ended < n_ranks
        pause(0.1);
        n_ended = length(glob('MatMPI/ended.*'));
    end
    for rank = 0:n_ranks - 1
        output = fileread(sprintf('MatMPI/%s.%d.out', programs{k}, rank));
        n_done = n_done + ~isempty(strfind(output, 'SUCCESS'));
    end
    disp(sprintf('%s: %d of %d ranks', programs{k}, n_done, n_ranks));
    if n_done < n_ranks
        failed{end + 1} = programs{k};
    end
    MPI_Abort;
    MatMPI_Delete_all;
end
if ~isempty(failed)
    error('unit_test: these programs have failed: %s', strjoin(failed, ', '));
end
disp('unit_test: SUCCESS');
