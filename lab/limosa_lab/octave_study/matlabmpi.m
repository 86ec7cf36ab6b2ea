% Half a round trip with MatlabMPI: messages by memory, as files, and by its original scheme, in one run.
%
%   limosa run -n 2 --dialect matlabmpi matlabmpi.m       (or: eval(MPI_Run('matlabmpi', 2, {})))
%
% The original scheme is written anew here with the same steps in the same language: the names of the files made of the
% communicator for each message, the values in a MAT file (`-v6`, as in MATLAB), then an empty lock file; the receiver
% tries again and again to open the lock file, without a pause, reads the values, and deletes both. As most of that time
% is that of `num2str` in Octave, "bare" has the same without making names. The four take turns, so that what else the
% machine does concerns all of them. Variables of the environment: MATLABMPI_STUDY_BYTES (lengths, blanks between them),
% MATLABMPI_STUDY_ROUNDS (turns of each), MATLABMPI_STUDY_FOLDER (for files).
%
% Rank 0 prints a line for each scheme, length and round: `scheme bytes seconds`, the least of the round's batches.

1; % a script, though functions come first

function name = file_of(kind, source, dest, tag, comm)
    machine = comm.machine_id(1, dest + 1);
    folder = comm.machine_db.dir{1, machine};
    name = [folder '/p' num2str(source) '_p' num2str(dest) '_t' num2str(tag) '_' kind '.mat'];
end

% The files of a message to the other rank, and of one from there.
function [to, from] = files_of(tag, comm)
    rank = MPI_Comm_rank(comm);
    other = 1 - rank;
    to = {file_of('buffer', rank, other, tag, comm), file_of('lock', rank, other, tag, comm)};
    from = {file_of('buffer', other, rank, tag, comm), file_of('lock', other, rank, tag, comm)};
end

function put(files, varargin)
    save('-v6', files{1}, 'varargin');
    fclose(fopen(files{2}, 'w+'));
end

function varargout = take(files)
    lock = fopen(files{2}, 'r');
    while lock == -1
        lock = fopen(files{2}, 'r');
    end
    fclose(lock);
    loaded = load(files{1});
    delete(files{1});
    delete(files{2});
    varargout = loaded.varargin;
end

function back = exchange(comm, value, trips, tag)
    other = 1 - MPI_Comm_rank(comm);
    back = value;
    for trip = 1:trips
        if other == 1
            MPI_Send(other, tag, comm, value);
            back = MPI_Recv(other, tag, comm);
        else
            MPI_Send(other, tag, comm, MPI_Recv(other, tag, comm));
        end
    end
end

function back = exchange_originally(comm, value, trips, tag, is_bare)
    persistent latest to from
    back = value;
    for trip = 1:trips
        if ~is_bare || ~isequal(tag, latest)
            [to, from] = files_of(tag, comm);
            latest = tag;
        end
        if MPI_Comm_rank(comm) == 0
            put(to, value);
            back = take(from);
        else
            put(to, take(from));
        end
    end
end

% Half a round trip: the least of `batches`, in which messages go to and fro `trips` times.
function seconds = bounce(exchange_by, comm, value, batches, trips, tag)
    seconds = inf;
    for batch = 1:batches
        start = tic;
        back = exchange_by(comm, value, trips, tag);
        seconds = min(seconds, toc(start) / 2 / trips);
    end
    if ~isequal(back, value)
        error('matlabmpi: what came back is not what was sent');
    end
end

function value = variable(name, otherwise_)
    value = getenv(name);
    if isempty(value)
        value = otherwise_;
    end
end

MPI_Init;
comm = MPI_COMM_WORLD;
rank = MPI_Comm_rank(comm);
if MPI_Comm_size(comm) ~= 2
    error('matlabmpi: start it on 2 ranks');
end
lengths = str2num(variable('MATLABMPI_STUDY_BYTES', '8 1024 65536 1048576 16777216'));
rounds = str2double(variable('MATLABMPI_STUDY_ROUNDS', '5'));
base = variable('MATLABMPI_STUDY_FOLDER', tempdir);
folder = '';
if rank == 0
    folder = tempname(base);
    mkdir(folder);
end
folder = MPI_Bcast(0, 'folder', comm, folder);
by_files = MatMPI_Comm_dir(comm, folder);
tag = 0;
schemes = {'memory', comm, @exchange, 20; 'files', by_files, @exchange, 1; ...
           'original', by_files, @(varargin) exchange_originally(varargin{:}, false), 1; ...
           'bare', by_files, @(varargin) exchange_originally(varargin{:}, true), 1};
for bytes = lengths
    value = rand(1, bytes / 8);
    batches = max(4, min(50, ceil(2e8 / bytes)));
    for turn = 1:rounds
        for scheme = schemes'
            tag = tag + 1;
            trips = max(1, min(scheme{4}, ceil(1e8 / bytes)));
            seconds = bounce(scheme{3}, scheme{2}, value, batches, trips, tag);
            if rank == 0
                printf('%s %d %.3e\n', scheme{1}, bytes, seconds);
            end
        end
    end
end
if rank == 0
    MPI_Recv(1, 'done', comm);
    rmdir(folder);
else
    MPI_Send(0, 'done', comm);
end
MPI_Finalize;
