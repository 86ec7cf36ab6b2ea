## SendMsg and its relatives: tags of both kinds, several values, several receivers, broadcasts, probing.
assert (Np > 1);
next = mod (Pid + 1, Np);
before = mod (Pid - 1, Np);
SendMsg (next, 3, Pid, "text", {1, [2 3]});
[a, b, c] = RecvMsg (before, 3);
assert ({a, b, c}, {before, "text", {1, [2 3]}});
SendMsg (next, "some tag", int8 (Pid));
agg (zeros (1, Np, map ([1 Np], {}, 0:Np-1)));  # the messages of arrays are apart from these
do
  [ranks, tags, texts] = ProbeMsg ("*", "*");
until (! isempty (ranks))
assert (ranks, before);
assert (texts, {"some tag"});
assert (RecvMsg (before, "some tag"), int8 (before));
if (Pid == 0)
  SendMsg (1:Np-1, 7, magic (4));  # to several ranks
else
  assert (RecvMsg (0, 7), magic (4));
endif
[x, y] = BcastMsg (Np - 1, 8, Pid, "all");
assert ({x, y}, {Np - 1, "all"});
SendMsg (next, 9, 1);
try
  [x, y] = RecvMsg (before, 9);
  error ("no error");
catch e
  assert (! isempty (strfind (e.message, "has 1 values, but 2 are received")));
end_try_catch
if (Pid == 0)
  disp ("messages: all right");
endif
