## FFT: the transform of a long vector, as a matrix P by Q: transforms of the columns, factors, transforms of the rows,
## with transpose_grid between them: each rank always has whole lines.
VALIDATE = 1;
P = 32;
Q = 24;
x = exp (1i * (1:P*Q) .^ 2 / 50);
X = complex (zeros (P, Q, map ([Np 1], {}, 0:Np-1)));
## Element p, q of the matrix is number (p - 1) * Q + q of the vector.
X(:,:) = reshape (x, Q, P).';
X = transpose_grid (X);
X = put_local (X, fft (local (X), [], 1));
[p, q] = global_ind (X);
X = put_local (X, local (X) .* exp (-2i * pi * (p' - 1) * (q - 1) / (P * Q)));
X = transpose_grid (X);
X = put_local (X, fft (local (X), [], 2));
result = agg (X);
if (Pid == 0)
  if (VALIDATE)
    ## Number (p - 1) + P * (q - 1) of the spectrum is element p, q.
    assert (result(:).', fft (x), 1e-9);
  end
  disp ("FFT: SUCCESS");
end
