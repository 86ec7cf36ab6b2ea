"""``limosa study files``: what messages cost that travel as files, measured here and simulated beyond this machine.

============== ===============================================================================
module         holds
============== ===============================================================================
``cli``        the command line
``simulator``  processes that wait for each other and for servers, in simulated time (pure)
``schemes``    broadcast and aggregation by files and over a network, on that (pure)
``costs``      what the operations cost here: file system, start of a program
``measure``    the runs, everything written down
``operations`` what messages cost the file system, counted
``reference``  message and lock files as plainly as they can be had, with polling: what Limosa is compared with
``results``    what was measured and simulated, as tables and sentences (pure)
``figures``    figures as SVG
``page``       the report: text, and a page of HTML that needs no other file
============== ===============================================================================
"""
