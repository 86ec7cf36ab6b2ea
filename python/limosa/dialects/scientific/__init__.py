"""Parts of ScientificPython that parallel programs use: ``Scientific.MPI``, ``Scientific.BSP``, and ``Scientific.N`` for their arrays."""
