## instr = load_instr (name)
##
## What save_instr has saved to the file NAME.mat.

function instr = load_instr (name)
  loaded = load ([name, ".mat"]);
  if ! isfield (loaded, "instr") || ! iscell (loaded.instr) || columns (loaded.instr) != 3
    error ("limosa:arg", "load_instr: %s.mat holds no time stamps", name);
  end
  instr = loaded.instr;
end
