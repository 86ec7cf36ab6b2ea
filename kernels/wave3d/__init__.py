"""The wave equation in three dimensions."""
