## ZoomImage: a film of one image, ever larger. The third dimension, time, is dealt to the ranks.
N = 48;
frames = 6;
factors = linspace (1, 4, frames);
image = zeros (N);
image(N/4:3*N/4, N/4:3*N/4) = 1;
image(N/2-1:N/2+1, :) = 2;
film = zeros (N, N, frames, map ([1 1 Np], {}, 0:Np-1));
mine = local (film);
at = global_ind (film, 3);
grid1 = (1:N) - (N + 1) / 2;
for k = 1:numel (at)
  places = (N + 1) / 2 + grid1 / factors(at(k));
  mine(:,:,k) = interp2 (image, places, places', 'nearest');
end
film = put_local (film, mine);
whole = agg (film);
if (Pid == 0)
  assert (size (whole), [N N frames]);
  assert (whole(:,:,1), image);
  for k = 1:frames
    places = (N + 1) / 2 + grid1 / factors(k);
    assert (whole(:,:,k), interp2 (image, places, places', 'nearest'));
  end
  disp ("ZoomImage: SUCCESS");
end
