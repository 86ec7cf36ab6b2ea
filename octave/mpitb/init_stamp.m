## init_stamp ([n])
##
## Begins to measure: forgets the time stamps there are. With n, there is room for so many at once.

function init_stamp (n = 0)
  global stamp_names stamp_times stamp_index
  stamp_names = cell (1, n);
  stamp_times = zeros (1, n);
  stamp_index = 0;
end
