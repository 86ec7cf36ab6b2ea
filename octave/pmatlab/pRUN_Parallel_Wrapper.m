## pRUN_Parallel_Wrapper: what pRUN starts on each rank: the script whose name is in the file that pRUN has made.
pMatlab_Init;
eval ([pm_stub() ";"]);
pMatlab_Finalize;
