## Clutter: a target in noise that grows with distance. Each rank has some beams (rows); the noise around each element
## is estimated from its neighbours in the row, and an element far above it is a target.
beams = 12;
gates = 80;
C = zeros (beams, gates, map ([Np 1], {}, 0:Np-1));
[i, j] = global_ind (C);
clutter = (1 + j / gates) .* (1 + 0.3 * sin (i' * j));
C = put_local (C, clutter);
targets = [3 20; 7 55; 12 61];
for k = 1:rows (targets)
  C(targets(k,1), targets(k,2)) = 40;
end
T = CFARNoiseEst (C, 5, 2);
R = CFARFindTarg (C, T);
[i, j] = find (R > 50);
found = sortrows ([i, j]);
if (inmap (C.map, Pid))
  assert (found, targets);
end
if (Pid == 0)
  disp ("Clutter: SUCCESS");
end
