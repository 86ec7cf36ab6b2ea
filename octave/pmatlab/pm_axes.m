## axes = pm_axes (shape, m): how the dimensions of an array are dealt, a column for each: its length, the cells along
## it, the block (see octave/src/layout.h), the overlap.
function axes = pm_axes (shape, m)
  cells = size (m.grid);
  cells(end+1:m.dim) = 1;
  block = max (ceil (shape ./ cells), 1);
  specs = m.dist_spec;
  kinds = {specs.dist};
  block(strcmp (kinds, "c")) = 1;
  cyclic = strcmp (kinds, "bc");
  block(cyclic) = [specs(cyclic).b_size];
  axes = [shape; cells; block; overlaps(m)];
endfunction
