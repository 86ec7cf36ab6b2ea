"""Every public name has a docstring with an example, and the examples are right."""

from __future__ import annotations

import inspect
from pathlib import Path

import limosa

PROGRAM = Path(__file__).parent / "programs" / "docstrings.py"


def test_examples_are_right(engine):
    assert "examples went well" in engine.run(PROGRAM, n=1, limit=30).out


def public_classes() -> list[type]:
    names = [name for name in limosa.__all__ if name[0].isupper() and not name.isupper()]
    return [getattr(limosa, name) for name in names]


def test_every_public_method_has_an_example():
    without = []
    for kind in public_classes():
        for name, method in inspect.getmembers(kind, inspect.isroutine):
            elsewhere = getattr(method, "__module__", None)  # methods that are compiled have none
            if name.startswith("_") or not (elsewhere or "limosa").startswith("limosa"):
                continue
            if name in {
                "abort",
                "fence",
                "free",
                "cancel",
                "shutdown",
                "test",
                "wait",
                "native",
            }:  # shown where they belong to, or end the job
                continue
            if ">>>" not in (method.__doc__ or ""):
                without.append(f"{kind.__name__}.{name}")
        assert ">>>" in (kind.__doc__ or ""), kind
    assert not without
