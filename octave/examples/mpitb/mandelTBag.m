## picture = mandelTBag ([n [, limit [, width]]])
##
## The Mandelbrot set, n-by-n points: process 0 hands out tasks of `width` columns to processes that have none, and
## collects the results; the others compute. With one process, that one computes all.

function picture = mandelTBag (n = 120, limit = 100, width = 7)
  MPI_Init;
  world = MPI_COMM_WORLD;
  [info, rank] = MPI_Comm_rank (world);
  [info, size] = MPI_Comm_size (world);
  picture = [];
  if rank == 0
    picture = bag (n, limit, width, size, world);
    mandel_check (picture, n, limit);
    printf ("Mandelbrot, task bag: %d points inside\n", sum (picture(:) == limit));
  else
    work (n, limit, width, world);
  end
  MPI_Finalize;
end

## A task is the number of its first column and how many there are; no columns mean the end. The tag of a result is the
## first column.
function picture = bag (n, limit, width, size, world)
  picture = zeros (n, n);
  next = 0;
  busy = 0;
  if size == 1
    picture = mandel_columns (0:n-1, n, limit);
    return
  end
  for worker = 1:size-1
    next = hand_out (worker, next, n, width, world);
  end
  busy = size - 1;
  part = zeros (n, width);
  while busy > 0
    [info, stat] = MPI_Recv (part, MPI_ANY_SOURCE, MPI_ANY_TAG, world);
    columns = stat.cnt / 8 / n;
    picture(:,stat.tag+(1:columns)) = part(:,1:columns);
    if columns == 0
      busy--;
    else
      next = hand_out (stat.src, next, n, width, world);
    end
  end
end

function next = hand_out (worker, next, n, width, world)
  task = [next, min(width, n - next)];
  MPI_Send (task, worker, 0, world);
  next += task(2);
end

function work (n, limit, width, world)
  task = [0, 1];
  while task(2) > 0
    MPI_Recv (task, 0, 0, world);
    result = mandel_columns (task(1) + (0:task(2)-1), n, limit);
    MPI_Send (result, 0, task(1), world);
  end
end
