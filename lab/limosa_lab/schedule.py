"""The order of the runs: round by round, and in each round program by program, with the libraries taking turns.

A noisy minute of the machine should disturb all libraries alike. So the libraries come right after each other for every
program and number of ranks (A B C D), and which comes first changes from one to the next and from round to round.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from limosa_lab.catalogue import Program


@dataclass(frozen=True)
class Task:
    """What each library is to run: a program, or some of its benchmarks, at one number of ranks."""

    program: Program
    ranks: int
    benches: tuple[str, ...] = ()


def tasks(programs: Sequence[Program], ranks: Sequence[int], benches: Sequence[str]) -> list[Task]:
    """Give the tasks of a round.

    Parameters
    ----------
    programs
        The chosen programs.
    ranks
        Numbers of ranks to keep of those at which a program runs; all if empty.
    benches
        Benchmarks to keep; all if empty.

    """
    made = []
    for program in programs:
        for number in program.ranks:
            if ranks and number not in ranks:
                continue
            for part in program.parts():
                if not benches or program.name in benches:
                    kept = tuple(part)
                elif part:
                    kept = tuple(name for name in part if name in benches)
                else:
                    kept = tuple(benches)
                if kept or not benches or program.name in benches:
                    made.append(Task(program, number, kept))
    return made


def turns(rounds: int, todo: Sequence[Task], libraries: Sequence[str]) -> Iterator[tuple[int, Task, str]]:
    """Give (round, task, library) in the order of the runs."""
    for number in range(rounds):
        for index, task in enumerate(todo):
            first = (number + index) % len(libraries)
            for library in [*libraries[first:], *libraries[:first]]:
                yield number, task, library
