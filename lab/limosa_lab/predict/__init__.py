"""Predictions of collective operations on more processes and hosts than there are, by simulation.

=============  ============================================================================================
module         holds
=============  ============================================================================================
`networks`     costs of messages (LogGP) on networks of known kinds, and from measured models
`schedules`    the algorithms of collective operations as rounds of messages
`simulation`   the clocks of all processes while a schedule runs on hosts that a network joins
`command`      ``limosa predict``
=============  ============================================================================================

Times are in microseconds, messages in bytes.
"""
