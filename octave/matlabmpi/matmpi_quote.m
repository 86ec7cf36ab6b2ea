## matmpi_quote (text): a text as one word of a shell's command line.

function word = matmpi_quote (text)
  word = ["'", strrep(text, "'", "'\\''"), "'"];
end
