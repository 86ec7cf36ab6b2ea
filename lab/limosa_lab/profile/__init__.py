"""Profiles of MPI programs, as ``limosa run --profile`` records them on any library behind the standard ABI.

===========  ==========================================================================
module       holds
===========  ==========================================================================
`files`      reads what the profiler has written (crate ``limosa-profile``)
`names`      what places of the program and communicators are
`operations` of calls that were recorded one by one, what each process did and waited for
`waiting`    which rank waited for which in that
`summary`    figures and tables of one profile, and of two side by side
`page`       one page of HTML
`trace`      the calls one by one, for viewers of traces such as Perfetto
`command`    ``limosa profile``
===========  ==========================================================================
"""
