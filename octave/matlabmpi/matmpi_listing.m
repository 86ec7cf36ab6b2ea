## matmpi_listing (ranks, texts, outputs): what MPI_Probe returns for messages from these ranks with these tags.

function [ranks, tags, texts] = matmpi_listing (ranks, texts, outputs)
  ranks = ranks(:);
  texts = texts(:);
  tags = reshape (str2double (texts), numel (texts), 1);
  if (outputs == 2)
    ranks = ranks(! isnan (tags));
    tags = tags(! isnan (tags));
  end
end
