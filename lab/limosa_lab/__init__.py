"""The benchmark laboratory of Limosa: ``limosa bench``, and ``limosa study`` in the folder ``study``.

It compiles the C programs in ``programs/`` with Limosa and with other MPI libraries, runs them in turns, keeps every
sample and the environment as JSON lines, and makes tables, plots and the verdict on the budgets from what was kept.

=================  ==============================================================================
module             holds
=================  ==============================================================================
``cli``            the command line
``terminal``       remarks and progress, for the user
``libraries``      Limosa and its peers: installation, compiling, launching
``catalogue``      which programs there are, and at which numbers of ranks they run
``build``          compiling, with a cache of binaries
``schedule``       the order of the runs (pure)
``runner``         one run: start, time limit, what it printed
``machine``        the environment record
``records``        reading and writing ``samples.jsonl``
``stats``          medians, quartiles, ratios (pure)
``wording``        how numbers and sizes are written
``tables``         tables as text and as Markdown (pure)
``budget``         the promises on performance, met or not (pure)
``plots``          figures
``report``         all of a report together
=================  ==============================================================================

Measuring and reporting meet only in ``samples.jsonl``: a report can be made again at any time from a kept file.
"""
