## handle = pm_open (file, mode): opens a file, or says why not.
function handle = pm_open (file, mode)
  [handle, reason] = fopen (file, mode);
  if (handle < 0)
    error ("pMatlab:file", "'%s' cannot be opened: %s", file, reason);
  endif
endfunction
