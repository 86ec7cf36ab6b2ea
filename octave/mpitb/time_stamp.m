## time_stamp (label)
##
## Notes the time under this label. A part of a program that is to be measured as a whole begins with the label
## NAME_ini and ends with NAME_fin: see clas_instr.

function time_stamp (label)
  global stamp_names stamp_times stamp_index
  stamp_index++;
  stamp_names{stamp_index} = label;
  stamp_times(stamp_index) = MPI_Wtime ();
end
