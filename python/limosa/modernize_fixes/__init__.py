"""Fixers for fissix, beside its own; see `limosa.modernize`."""
