## save_dmat (X, file): writes a matrix in blocks to a file: its elements column by column, without a header, in the
## byte order of the machine. Classes: integers, single, double. Collective over all ranks, on a file system that all
## share.
function save_dmat (X, file)
  X = pm_complete (X);
  cls = class (X.local);
  if (X.dim != 2 || any (! strcmp ({X.map.dist_spec.dist}, "b")))
    error ("pMatlab:map", "save_dmat: the matrix must have two dimensions and blocks in both; hint: remap it");
  endif
  if (! isnumeric (X.local) || ! isreal (X.local))
    error ("pMatlab:class", "save_dmat: a %s array cannot be written; hint: integers, single or double, real", cls);
  endif
  if (Pid () == 0)
    fclose (pm_open (file, "w"));  # an old file may be longer
  endif
  pm_barrier ();
  own = pm_own (X);
  if (! isempty (own))
    places = pm_inds (X);
    __pmatlab_write__ (file, own, places{1}(1) - 1, places{2}(1) - 1, X.shape(1));
  endif
  pm_barrier ();
endfunction
