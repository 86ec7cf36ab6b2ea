"""The Mandelbrot set."""
