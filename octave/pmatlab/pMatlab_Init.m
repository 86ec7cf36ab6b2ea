## pMatlab_Init: joins the ranks of the job, and fills the global pMATLAB: comm, comm_size, my_rank, leader, host,
## pList, tag_num, tag. In a job of `limosa run` the first use of Np or Pid does it as well.
global pMATLAB
pm_begin ();
