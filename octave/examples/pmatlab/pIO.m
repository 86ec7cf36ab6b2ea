## IO: each rank writes its columns of a matrix to files, one for each column, and reads them back; save_dmat writes the
## whole matrix to one file.
M = 60;
N = 12;
folder = "dat";
if (Pid == 0 && ! exist (folder, "dir"))
  mkdir (folder);
end
agg (zeros (1, Np, map ([1 Np], {}, 0:Np-1)));  # a barrier: the folder is there
X = zeros (M, N, map ([1 Np], {}, 0:Np-1));
X(:,:) = (1:M)' * (1:N);
columns_of_mine = global_ind (X, 2);
mine = local (X);
for k = 1:numel (columns_of_mine)
  file = fopen (fullfile (folder, sprintf ("column%d.bin", columns_of_mine(k))), "w");
  fwrite (file, mine(:,k), "double");
  fclose (file);
end
agg (zeros (1, Np, map ([1 Np], {}, 0:Np-1)));
## Read with another map: column k on rank mod (k - 1, Np).
Y = zeros (M, N, map ([1 Np], 'c', 0:Np-1));
at = global_ind (Y, 2);
for k = 1:numel (at)
  file = fopen (fullfile (folder, sprintf ("column%d.bin", at(k))));
  Y.local(:,k) = fread (file, Inf, "double");
  fclose (file);
end
Z = zeros (M, N, map ([1 Np], {}, 0:Np-1));
Z(:,:) = Y;
difference = max (max (abs (Z - X)));
save_dmat (X, fullfile (folder, "whole.bin"));
if (Pid == 0)
  assert (difference, 0);
  file = fopen (fullfile (folder, "whole.bin"));
  assert (fread (file, [M N], "double"), (1:M)' * (1:N));
  fclose (file);
  confirm_recursive_rmdir (false, "local");
  rmdir (folder, "s");
  disp ("IO: SUCCESS");
end
