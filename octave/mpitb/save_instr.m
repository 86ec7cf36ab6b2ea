## save_instr (instr, name)
##
## Saves what clas_instr has returned to the file NAME.mat.

function save_instr (instr, name)
  save ([name, ".mat"], "instr");
end
