## FFTTest: the transform in two dimensions: along the rows, a corner turn, along the columns.
M = 18;
N = 12;
whole = cos ((1:M)' * (1:N) / 7);
X = zeros (M, N, map ([Np 1], {}, 0:Np-1));
Y = zeros (M, N, map ([1 Np], {}, 0:Np-1));
X(:,:) = whole;
X(:,:) = fft (X, [], 2);  # X becomes complex
Y(:,:) = X;
Y(:,:) = fft (Y, [], 1);
result = agg (Y);
if (Pid == 0)
  assert (result, fft2 (whole), 1e-10);
end
Z = zeros (M, N, map ([Np 1], {}, 0:Np-1));
Z(:,:) = ifft (Y, [], 1);
Z(:,:) = real (ifft (Z, [], 2));
worst = max (max (abs (Z - whole)));
assert (worst < 1e-12);
if (Pid == 0)
  disp ("FFTTest: SUCCESS");
end
