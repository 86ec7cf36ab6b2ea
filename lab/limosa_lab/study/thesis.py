"""The thesis's own numbers, for orientation: measured on a cluster of 2.5 GHz Xeons with Gigabit Ethernet, in 2010."""

LATENCY_US = {"c": 8, "mpi4py": 14, "scientific": 23, "pypar": 25, "mympi": 33, "pympi": 133, "boostmpi": 162}
"""Table 5.1, latency of the ping-pong by least squares."""

BANDWIDTH = {
    "c": 967.004,
    "mpi4py": 944.475,
    "pypar": 898.949,
    "scientific": 508.972,
    "mympi": 364.18,
    "pympi": 150.901,
    "boostmpi": 100.658,
}
"""Table 5.1, bandwidth of the ping-pong in MB/s by least squares."""

INNER_SECONDS = {
    "c": {1: 3.996, 2: 2.049, 4: 1.063, 8: 0.625, 16: 0.453, 32: 0.502, 64: 0.789},
    "pypar": {1: 3.875, 2: 2.236, 4: 1.439, 8: 1.096, 16: 0.842, 32: 0.917, 64: 0.897},
}
"""Table 2.1, inner product of 2^18 elements: seconds by number of processes. How often it was repeated is not said."""

SLICES_OVER_C = (8.0, 10.0)
"""Section 6.1.4: how many times slower sliced NumPy was than C, in the wave equation."""

CLAIMS = {
    "pingpong": "mpi4py was the fastest module, pyMPI and boostmpi the slowest by a factor of ten and more.",
    "bcast": "Scientific.MPI and mpi4py were ahead of the others; beyond 4 MB they were as fast as C.",
    "reduce": "mpi4py was ahead of the five others.",
    "allreduce": "mpi4py and Scientific.MPI were fairly fast, pyMPI and boostmpi comparatively slow.",
    "inner": "Python and C were at the same level up to 2 processes; C gained more from 16 (8.8 times) than Python "
    "(4.6 times).",
    "wave3d": "C was 8 to 10 times faster than any Python module, also on one process; the modules differed little up "
    "to 16 processes.",
    "nonblocking": "Non-blocking communication was ahead on the small mesh; on the large one the difference was not "
    "clear.",
    "cg": "The modules differed little up to 16 processes; with more, those with large latency fell behind.",
}
"""What the thesis says about each figure, in short."""
