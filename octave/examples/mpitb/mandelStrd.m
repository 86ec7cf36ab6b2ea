## picture = mandelStrd ([n [, limit]])
##
## The Mandelbrot set, n-by-n points: process r computes every size-th column from r on; process 0 gathers the picture.

function picture = mandelStrd (n = 120, limit = 100)
  MPI_Init;
  world = MPI_COMM_WORLD;
  [info, rank] = MPI_Comm_rank (world);
  [info, size] = MPI_Comm_size (world);
  mine = mandel_columns (rank:size:n-1, n, limit);
  picture = [];
  if rank > 0
    MPI_Send (mine, 0, rank, world);
  else
    picture = zeros (n, n);
    picture(:,1:size:n) = mine;
    for source = 1:size-1
      part = zeros (n, numel (source:size:n-1));
      MPI_Recv (part, source, source, world);
      picture(:,source+1:size:n) = part;
    end
    mandel_check (picture, n, limit);
    printf ("Mandelbrot, strided: %d points inside\n", sum (picture(:) == limit));
  end
  MPI_Finalize;
end
