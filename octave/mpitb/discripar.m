## [seq, par] = discripar (instr, name [, seqtime])
##
## How much time is spent outside (seq) and inside (par) of the part `name`, which has the labels NAME_ini and NAME_fin.
## `instr` is a structure with the fields names (labels) and times (time stamps). Prints both, the speedup that is
## possible at most if only the part runs in parallel, and the real one if `seqtime` gives the time of the sequential
## program.

function [seq, par] = discripar (instr, name, seqtime)
  if nargin < 2 || ! isstruct (instr) || ! all (isfield (instr, {"names", "times"})) || ! ischar (name)
    error ("limosa:arg", "discripar: a structure with the fields names and times, and the name of a part");
  end
  begins = find (strcmp (instr.names, [name, "_ini"]));
  ends = find (strcmp (instr.names, [name, "_fin"]));
  if numel (begins) != numel (ends) || any (begins > ends) || any (ends(1:end-1) > begins(2:end))
    error ("limosa:arg", "discripar: the labels %s_ini and %s_fin do not take turns", name, name);
  end
  times = instr.times;
  par = sum (times(ends) - times(begins));
  seq = times(numel (instr.names)) - times(1) - par;
  printf ("sequential %f s, parallel %f s, together %f s\n", seq, par, seq + par);
  printf ("speedup at most %f\n", (seq + par) / seq);
  if nargin > 2
    printf ("real speedup %f\n", seqtime / (seq + par));
  end
end
