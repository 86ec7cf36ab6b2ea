## instr = clas_instr ()
##
## What the time stamps say, as a cell with three columns: label, time from this stamp to the next, and {} or, of a part
## with the labels NAME_ini and NAME_fin, the rows within it, which such a cell holds again; its own row has the label
## NAME and the time of the whole. After such a part comes a row "-" for the time until the next label. Each level ends
## with a row "TOTAL:". The time stamps are forgotten.

function instr = clas_instr ()
  global stamp_names stamp_times stamp_index
  names = stamp_names(1:stamp_index);
  times = stamp_times(1:stamp_index);
  clear -global stamp_names stamp_times stamp_index
  [instr, next] = level (names, times, 1, "");
  if next <= numel (names)
    error ("limosa:arg", "clas_instr: the label %s ends a part that has not begun", names{next});
  end
end

## The rows of the part that begins at stamp i, up to its end; `next` is the stamp after it.
function [rows, next] = level (names, times, i, part)
  rows = {};
  first = i;
  n = numel (names);
  if ! isempty (part)
    rows(end+1,:) = {[part, "_ini"], span(times, i), {}};
    i++;
  end
  while i <= n
    name = names{i};
    if is_end (name, "_fin")
      if ! strcmp (name, [part, "_fin"])
        break
      end
      rows(end+1,:) = {"TOTAL:", times(i) - times(first), {}};
      next = i + 1;
      return
    elseif is_end (name, "_ini")
      inner = name(1:end-4);
      [more, after] = level (names, times, i, inner);
      rows(end+1,:) = {inner, times(after-1) - times(i), more};
      rows(end+1,:) = {"-", span(times, after - 1), {}};
      i = after;
    else
      rows(end+1,:) = {name, span(times, i), {}};
      i++;
    end
  end
  if ! isempty (part)
    error ("limosa:arg", "clas_instr: the part %s has no label %s_fin", part, part);
  end
  next = i;
  if n > 0 && i > n
    rows(end+1,:) = {"TOTAL:", times(n) - times(1), {}};
  end
end

function yes = is_end (name, text)
  yes = numel (name) > numel (text) && strcmp (name(end-numel (text)+1:end), text);
end

## Time from one stamp to the next; none after the last.
function seconds = span (times, i)
  seconds = 0;
  if i < numel (times)
    seconds = times(i+1) - times(i);
  end
end
