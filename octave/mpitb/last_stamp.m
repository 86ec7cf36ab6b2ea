## last_stamp ()
##
## Notes the time under the label END, and prints how long it is since the first stamp and how many there are.

function last_stamp ()
  global stamp_times stamp_index
  time_stamp ("END");
  printf ("%d time stamps in %.3f s\n", stamp_index, stamp_times(stamp_index) - stamp_times(1));
end
