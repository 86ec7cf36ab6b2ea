"""Runs the examples in the docstrings of the package, on one rank."""

from __future__ import annotations

import doctest
import importlib
import sys

MODULES = [
    "limosa._cart",
    "limosa._collectives",
    "limosa._comm",
    "limosa._executor",
    "limosa._files",
    "limosa._graph",
    "limosa._messages",
    "limosa._nonblocking",
    "limosa._open",
    "limosa._ops",
    "limosa._reductions",
    "limosa._request",
    "limosa._spawn",
    "limosa._windows",
    "limosa.errors",
]

attempted = 0
for name in MODULES:
    result = doctest.testmod(importlib.import_module(name))
    attempted += result.attempted
    if result.failed:
        sys.exit(f"{name}: {result.failed} examples failed")
print(f"{attempted} examples went well")
