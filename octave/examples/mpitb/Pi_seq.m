## result = Pi_seq ([n])
##
## Pi as the integral of 4 / (1 + x^2) from 0 to 1, by the midpoint rule with n intervals, in one process.

function result = Pi_seq (n = 1e6)
  result = pi_part (n, 0, 1);
  if abs (result - pi) > 5e-10
    warning ("Pi:inexact", "Pi_seq: the error is %g", result - pi);
  end
end
