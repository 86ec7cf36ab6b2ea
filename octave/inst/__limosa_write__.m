## Writes a value into a file, for __limosa_read__: how limosa_run and the ranks that it starts exchange values.
function __limosa_write__ (name, value)
  [file, problem] = fopen (name, "w");
  if (file < 0)
    error ("limosa:file", "%s cannot be written: %s", name, problem);
  endif
  fwrite (file, limosa_serialize (value));
  fclose (file);
endfunction
