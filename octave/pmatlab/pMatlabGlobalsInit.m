## pMatlabGlobalsInit: makes the global pMATLAB that of a program of one rank.
global pMATLAB
pm_serial ();
