"""``limosa study octave``: messages and distributed arrays in Octave, beside C and Python.

===================  ===================================================================================
file                 holds
===================  ===================================================================================
`measure`            the jobs, in turns; everything goes into ``results.json``
`results`, `page`    tables, sentences, figures, one page of HTML
`command`            the command line
``modern.m``         the programs with Limosa's own functions, ``mpitb.m`` with MPITB's, ``matlabmpi.m`` with
                     MatlabMPI's by memory, by files and by its original scheme; ``bounce.c`` in C
``mandelbrot.m``     the Mandelbrot set in column blocks
``arrays.m``         STREAM, HPL, FFT and `agg` with distributed arrays of pMatlab; in Python they are the kernel
                     ``arrays/beside_octave.py``
===================  ===================================================================================

As in a comparison of MatlabMPI, MPI-TB and C that was published: half a round trip, 1 KB broadcast against the number
of processes, mean and range of 30 repetitions, and a Mandelbrot set of 4800 x 4800.
"""
