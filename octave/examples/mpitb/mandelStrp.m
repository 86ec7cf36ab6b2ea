## picture = mandelStrp ([n [, limit]])
##
## The Mandelbrot set, n-by-n points: each process computes a strip of columns; MPI_Gatherv puts them together on
## process 0.

function picture = mandelStrp (n = 120, limit = 100)
  MPI_Init;
  world = MPI_COMM_WORLD;
  [info, rank] = MPI_Comm_rank (world);
  [info, size] = MPI_Comm_size (world);
  borders = fix ((0:size) * n / size);
  mine = mandel_columns (borders(rank+1):borders(rank+2)-1, n, limit);
  picture = zeros (n, n);
  MPI_Gatherv (mine, picture, n * diff (borders), n * borders(1:end-1), 0, world);
  if rank == 0
    mandel_check (picture, n, limit);
    printf ("Mandelbrot, strips: %d points inside\n", sum (picture(:) == limit));
  end
  MPI_Finalize;
end
