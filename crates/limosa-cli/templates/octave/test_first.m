% The test of circle_area: `limosa run -n 3 test_first.m`. An error on any rank ends the job with an error.

assert(circle_area(10000), pi, 1e-5);
% Prints the line on rank 0 after all ranks have passed.
limosa_barrier();
if limosa_rank() == 0
  printf("passed on %d ranks\n", limosa_size());
end
