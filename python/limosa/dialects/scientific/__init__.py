"""Parts of ScientificPython that parallel programs use.

They are ``Scientific.MPI``, ``Scientific.BSP``, and ``Scientific.N`` for their arrays.
"""
