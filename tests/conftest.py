"""The environment of all tests and of the jobs that they start."""

import os

# Ranks are processes. The threads of OpenBLAS, one for each processor in every rank, would wait by polling.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
