"""The inner product of two vectors."""
