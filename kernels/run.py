"""Runs several kernels in one job: ``limosa run -n 2 python run.py --comm pypar inner 'wave3d --n 65' 'cg --n 9'``."""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: its threads would compete with the other processes

from cg.cg import KERNEL as CG
from common.program import main_of_several
from inner.inner import KERNEL as INNER
from mandelbrot.mandelbrot import KERNEL as MANDELBROT
from micro.micro import KERNEL as MICRO
from wave3d.wave3d import KERNEL as WAVE3D

KERNELS = {kernel.name: kernel for kernel in (MICRO, INNER, WAVE3D, CG, MANDELBROT)}

if __name__ == "__main__":
    sys.exit(main_of_several(KERNELS))
