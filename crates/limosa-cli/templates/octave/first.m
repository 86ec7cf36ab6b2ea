% A first program with Limosa: the ranks compute the area of the unit circle together.
%
%     limosa run -n 4 first.m
%
% Limosa starts this file 4 times. The 4 processes are the ranks of the job. They share no variables: what one rank
% computes reaches the other ranks by messages. The guide is docs/octave.md of Limosa; `help limosa_allreduce` explains
% a function.

area = circle_area(100000);
% All ranks have come here. If each printed the result, it would appear once for each rank.
if limosa_rank() == 0
  printf("the area of the unit circle, by %d ranks, is %.5f\n", limosa_size(), area);
end
