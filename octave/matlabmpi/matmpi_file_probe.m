## [ranks, tags, texts] = matmpi_file_probe (pattern, comm, outputs): what MPI_Probe returns by the lock files of this
## job for this rank whose names match a pattern.

function [ranks, tags, texts] = matmpi_file_probe (pattern, comm, outputs)
  files = glob (pattern);
  ranks = zeros (0, 1);
  texts = cell (0, 1);
  for k = 1:numel (files)
    [~, name] = fileparts (files{k});
    parts = regexp (name, '^p(\d+)_p(\d+)_t(.*)_lock$', "tokens", "once");
    if (! isempty (parts) && str2double (parts{2}) == comm.rank && __matmpi_is_locked__ (files{k}, comm))
      ranks(end + 1, 1) = str2double (parts{1});
      texts{end + 1, 1} = parts{3};
    end
  end
  if (isempty (ranks))
    MatMPI_Sleep ();
  end
  [ranks, tags, texts] = matmpi_listing (ranks, texts, outputs);
end
