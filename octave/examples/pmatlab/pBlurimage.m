## Blurimage: an image is blurred some times. Each rank has a block, and the first rows of the next block as overlap;
## synch fills it before each convolution. A kernel that looks downwards only needs no more.
CHECK = 1;
M = 64;
N = 48;
K = 4;  # rows and columns of the kernel
trials = 5;
kernel = ones (K) / K ^ 2;
Z = zeros (M, N, map ([Np 1], {}, 0:Np-1, [K 0]));
Z(:,:) = mod ((1:M)' * (1:N), 17);
places = global_ind (Z, 1);
whole = mod ((1:M)' * (1:N), 17);
for k = 1:trials
  Z = synch (Z);
  ## The kernel reaches from its centre to the rows below, so the rows that are the rank's own come out right.
  padded = [local(Z); zeros(K - 1, N)];
  blurred = zeros (size (local (Z)));
  for i = 0:K-1
    blurred += padded(i+1:i+rows (blurred), :) * kernel(1) ;
  end
  Z = put_local (Z, conv2 (blurred, ones (1, K), "same"));
  if (CHECK)
    below = [whole; zeros(K - 1, N)];
    whole = conv2 (below, ones (K, 1), "valid") * kernel(1);
    whole = conv2 (whole, ones (1, K), "same");
  end
end
Z = synch (Z);
worst = max (max (abs (Z - whole)));
if (Pid == 0)
  assert (worst < 1e-12 * max (whole(:)));
  disp ("Blurimage: SUCCESS");
end
