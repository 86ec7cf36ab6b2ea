## The share of every `step`th interval, from number `first` (0-based) on, in the integral that is pi.

function part = pi_part (n, first, step)
  x = ((first:step:n-1) + 0.5) / n;
  part = sum (4 ./ (1 + x .^ 2)) / n;
end
