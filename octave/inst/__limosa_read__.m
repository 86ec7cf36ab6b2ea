## The value that __limosa_write__ has written into a file.
function value = __limosa_read__ (name)
  [file, problem] = fopen (name);
  if (file < 0)
    error ("limosa:file", "%s cannot be read: %s", name, problem);
  endif
  value = limosa_deserialize (fread (file, [1, Inf], "uint8=>uint8"));
  fclose (file);
endfunction
