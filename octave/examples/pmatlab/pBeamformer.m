## Beamformer: signals of an array of sensors at many frequencies, which are dealt to the ranks. From a source at an
## angle each sensor has the same wave with another phase; the beam that looks there gets all of its energy.
sensors = 16;
snapshots = 40;
frequencies = 12;
angles = linspace (-80, 80, 33);
source = 21;  # number of the angle of the source
at_rank = map ([1 1 Np], {}, 0:Np-1);
data = complex (zeros (sensors, snapshots, frequencies, at_rank));
beams = zeros (numel (angles), snapshots, frequencies, at_rank);
steer = @(angle, f) exp (2i * pi * (0:sensors-1)' * sind (angle) * 0.5 * (0.8 + 0.2 * f / frequencies));
f = global_ind (data, 3);
signals = local (data);
power_of = local (beams);
for k = 1:numel (f)
  wave = exp (2i * pi * (1:snapshots) * f(k) / 7);
  signals(:,:,k) = steer (angles(source), f(k)) * wave;
  for b = 1:numel (angles)
    power_of(b,:,k) = abs (steer (angles(b), f(k))' * signals(:,:,k)) .^ 2 / sensors ^ 2;
  end
end
data = put_local (data, signals);
beams = put_local (beams, power_of);
total = agg_all (sum (beams, 3)) / frequencies;
if (Pid == 0)
  [strongest, at] = max (mean (total, 2));
  assert (at, source);
  assert (strongest, 1, 1e-12);
  disp ("Beamformer: SUCCESS");
end
