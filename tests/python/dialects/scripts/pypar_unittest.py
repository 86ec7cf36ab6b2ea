"""Unit tests that start jobs of their own."""

import unittest

import pypar
from pypar.test import in_parallel, main


@in_parallel(3)
class OnThree(unittest.TestCase):
    def test_broadcast(self):
        self.assertEqual(pypar.size(), 3)
        self.assertEqual(pypar.broadcast(pypar.rank(), 2), 2)

    def test_that_fails(self):
        self.assertNotEqual(pypar.rank(), 1, "as it should")


if __name__ == "__main__":
    main()
