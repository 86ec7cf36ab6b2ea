% blurimage: an image in strips of columns, one per rank, is blurred again and again. Before each step the strips'
% edges go to the neighbours, all sends before all receives. For any number of ranks; prints rates, and compares with
% an image that one rank blurs alone.

MPI_Init;
comm = MPI_COMM_WORLD;
comm_size = MPI_Comm_size(comm);
my_rank = MPI_Comm_rank(comm);

n_rows = 120;
n_columns = 60; % of each strip
n_steps = 8;
blur = 5;       % width of the filter
edge = (blur - 1) / 2;
kernel = ones(blur) / blur^2;

% Every rank knows the whole image, to compare with it at the end.
whole = mod((1:n_rows)' * (1:n_columns * comm_size), 17);
own = my_rank * n_columns + (1:n_columns);
strip = whole(:, own);
left = my_rank - 1;
right = my_rank + 1;
start_delay = 0.2;
synch_start;

communication = 0;
begin = tic;
for step = 1:n_steps
    tag = 1000 + 2 * step;
    start = tic;
    if left >= 0
        MPI_Send(left, tag, comm, strip(:, 1:edge));
    end
    if right < comm_size
        MPI_Send(right, tag + 1, comm, strip(:, end-edge+1:end));
    end
    before = zeros(n_rows, edge);
    after = zeros(n_rows, edge);
    if right < comm_size
        after = MPI_Recv(right, tag, comm);
    end
    if left >= 0
        before = MPI_Recv(left, tag + 1, comm);
    end
    communication = communication + toc(start);
    blurred = conv2([before strip after], kernel, 'same');
    strip = blurred(:, edge+1:end-edge);
end
total = toc(begin);

for step = 1:n_steps
    whole = conv2(whole, kernel, 'same');
end
difference = max(max(abs(strip - whole(:, own))));
if difference > 1e-12
    error('blurimage: the strip of rank %d differs by %g', my_rank, difference);
end
operations = n_steps * numel(strip) * blur^2 * 2;
disp(sprintf('rank %d: %.3g operations/s, %.3g s of %.3g s in messages', my_rank, operations / total, ...
             communication, total));

disp('SUCCESS');
MPI_Finalize;
