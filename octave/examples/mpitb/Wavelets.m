## w = Wavelets ([n])
##
## The wavelet transform of a picture of n-by-n points, n a power of two. Process 0 scatters blocks of columns; each
## process transforms its columns, all exchange blocks so that each has rows, transforms those, and process 0 gathers
## the result, which must be that of WaveSeq. The number of processes must divide n.

function w = Wavelets (n = 128)
  MPI_Init;
  world = MPI_COMM_WORLD;
  [info, rank] = MPI_Comm_rank (world);
  [info, size] = MPI_Comm_size (world);
  if mod (n, size) != 0
    error ("limosa:arg", "Wavelets: %d processes do not divide %d columns", size, n);
  end
  image = [];
  w = zeros (n, n);
  if rank == 0
    image = wave_image (n);
  end
  width = n / size;
  mine = zeros (n, width);
  MPI_Scatter (image, mine, 0, world);
  mine = transposed (wave_columns (mine), size, world);
  mine = wave_columns (mine);
  MPI_Gather (mine, w, 0, world);
  w = w.';
  if rank == 0
    wrong = max (abs ((w - WaveSeq (n))(:)));
    printf ("wavelets of %d x %d: differs from one process by %g\n", n, n, wrong);
    if wrong > 1e-9
      error ("limosa:damaged", "Wavelets: the transform is wrong by %g", wrong);
    end
  end
  MPI_Finalize;
end

## Of a matrix that lies in blocks of columns: the own block of columns of its transpose.
function block = transposed (mine, size, world)
  [n, width] = deal (rows (mine), columns (mine));
  # The part for each process in one piece: transposed, since the receiver has them as columns.
  out = permute (reshape (mine, width, size, width), [3, 1, 2]);
  in = zeros (width, width, size);
  MPI_Alltoall (out, in, width * width, world);
  block = reshape (permute (in, [1, 3, 2]), n, width);
end
