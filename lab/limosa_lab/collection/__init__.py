"""One page of everything that was measured: ``limosa report``.

===========  ==========================================================================
module       holds
===========  ==========================================================================
`charts`     interactive figures in Vega-Lite's language, and their data
`sections`   finds results in folders, and makes a section of each
`page`       the page, which needs no other file and no network
`command`    ``limosa report``
===========  ==========================================================================
"""
