"""``limosa tune``: which collectives other algorithms, or combinations of others, do faster on this machine.

`command` is the command line; `steps` measures; `variants` are the libraries with other algorithms and with replaced
collectives; `choices` finds from models what may be faster, `verdict` from measurements what is; `rules` and `store`
are the tuning file's entries and the file; `consistency` lists what takes longer than a combination of others, whatever
can be done about it; `report` makes tables. ``substitute.c`` with its headers replaces collectives at run time.
"""
