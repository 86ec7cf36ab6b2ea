## matmpi_tag_text (tag): a tag as text, by which messages are matched.

function text = matmpi_tag_text (tag)
  if (ischar (tag) && rows (tag) <= 1)
    text = tag;
  elseif ((isnumeric (tag) || islogical (tag)) && isreal (tag) && ! isempty (tag))
    text = num2str (tag);
  else
    error ("limosa:tag", "matmpi: a tag is a number or a text, not a value of class %s, %s", class (tag), ...
           strjoin (cellfun (@num2str, num2cell (size (tag)), "UniformOutput", false), "x"));
  end
end
