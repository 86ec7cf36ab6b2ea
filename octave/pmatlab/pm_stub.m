## name = pm_stub (): the script that pRUN was called for. Rank 0 removes the file that says so. Collective.
function name = pm_stub ()
  file = glob (".pRUN_Parallel_Stub_*_temp"){1};
  name = regexprep (file, '^\.pRUN_Parallel_Stub_(.*)_temp$', "$1");
  pm_barrier ();
  if (Pid () == 0)
    unlink (file);
  endif
endfunction
