## The wavelet transform of each column with Daubechies' four coefficients, periodic: each step halves what is left,
## averages first and details behind them, down to 4 elements. The length of a column must be a power of two.

function a = wave_columns (a)
  r = sqrt (3);
  h = [1 + r, 3 + r, 3 - r, 1 - r] / (4 * sqrt (2));
  g = [h(4), -h(3), h(2), -h(1)];
  n = rows (a);
  while n > 4
    x = a(1:n,:);
    odd = x(1:2:n,:);
    even = x(2:2:n,:);
    low = h(1) * odd + h(2) * even + h(3) * circshift (odd, -1) + h(4) * circshift (even, -1);
    high = g(1) * odd + g(2) * even + g(3) * circshift (odd, -1) + g(4) * circshift (even, -1);
    a(1:n,:) = [low; high];
    n /= 2;
  end
end
