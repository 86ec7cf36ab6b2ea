% circle_area(steps): the area of the unit circle on every rank, from strips of width 1/steps under the quarter circle.

function area = circle_area(steps)
  % The ranks deal out the strips: with 4 ranks, rank 1 computes the strips 1, 5, 9, ...
  x = ((limosa_rank() : limosa_size() : steps - 1) + 0.5) / steps;
  own_part = sum(4 / steps * sqrt(1 - x .^ 2));
  % Adds up the parts of all ranks; each rank gets the sum. All ranks must make this call, otherwise it waits.
  area = limosa_allreduce(own_part, "sum");
end
