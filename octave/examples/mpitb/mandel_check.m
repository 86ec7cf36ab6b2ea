## Compares some columns of a picture with what they must be.

function mandel_check (picture, n, limit)
  for column = unique (fix ([0, n/3, n/2, n-1]))
    if ! isequal (picture(:,column+1), mandel_columns (column, n, limit))
      error ("limosa:damaged", "column %d of the picture is wrong", column);
    end
  end
end
