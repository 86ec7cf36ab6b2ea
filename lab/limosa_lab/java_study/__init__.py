"""``limosa study java``: messages, collectives and kernels in Java beside C, with ranks as processes and as threads.

The source is G. L. Taboada et al., "Performance analysis of message-passing libraries on high-speed clusters": its
suite of single operations, the kernels of the Java Grande Forum, and the ratios of its tables 6 to 8.

=============  =====================================================================================================
`command`      the command line
`measure`      the jobs, in turns
`source`       figures of the source
`results`      tables and the answer
`page`         the report
=============  =====================================================================================================
"""
