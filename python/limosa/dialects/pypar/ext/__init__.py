"""What came with pypar beside it: ways to share out work. Import the submodules, as in pypar."""
