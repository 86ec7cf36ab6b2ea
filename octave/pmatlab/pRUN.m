## text = pRUN (m_file, n_proc, machines): starts a script on n_proc ranks; eval (pRUN (...)) runs it as rank 0 in this
## interpreter, too. `machines` as for MPI_Run: {} for this machine. What an earlier run has left is removed first. The
## output of the other ranks is in MatMPI/pRUN_Parallel_Wrapper.<rank>.out. With n_proc 0 the script runs alone.
function text = pRUN (m_file, n_proc, machines)
  if (exist ([m_file ".m"], "file") != 2)
    error ("pMatlab:arguments", "pRUN: there is no script %s.m in %s or on the path", m_file, pwd ());
  endif
  if (n_proc <= 0)
    text = ["pMatlabGlobalsInit; " m_file ";"];
    return;
  endif
  printf ("pRUN: %s on %d ranks\n", m_file, n_proc);
  if (exist ("MatMPI", "dir"))
    MPI_Abort;
    MatMPI_Delete_all;
  endif
  for old = glob (".pRUN_Parallel_Stub_*_temp")'
    unlink (old{1});
  endfor
  fclose (pm_open ([".pRUN_Parallel_Stub_" m_file "_temp"], "w"));
  text = ["pMatlabGlobalsInit; " MPI_Run("pRUN_Parallel_Wrapper", n_proc, machines)];
endfunction
