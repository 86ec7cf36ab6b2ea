"""``limosa study thesis``: repeats a thesis that compared Python modules for MPI, on the libraries of this machine.

The programs are the kernels of the project, in C and in Python; in Python only the communication differs from module to
module. A *contender* is a module (or C) on an MPI library.

=============  ================================================================================
module         holds
=============  ================================================================================
``cli``        the command line
``plan``       what is run, in three sizes (pure)
``measure``    the runs, in turns, everything written down
``results``    from records to times, fits and ratios (pure)
``thesis``     the thesis's own numbers
``tables``     tables of the results (pure)
``verdict``    what was found, in sentences: only what is beyond the noise (pure)
``figures``    figures as SVG
``page``       the report: text, and a page of HTML that needs no other file
=============  ================================================================================
"""
