"""A parallel loop in one line: ``foreach`` and ``RunMasterSlave``; on one rank (or with useMPI=False) an ordinary loop.

The calls are made by all ranks. After the one with ``finalRun=True``, which is the default, MPI is left and all ranks
but the first exit. As upstream, except that MPI is not left at once by the import where there is only one rank.
"""

from collections.abc import Callable, Sequence
from typing import Any

from limosa.dialects import pypar
from limosa.dialects.pypar.ext.pypar_balancer import PyparBalancer, PyparWork

HAVE_PYPAR = 1
HAVE_MPI = int(pypar.size() > 1)
DEBUG = 0
MY_RANK = pypar.rank()


class GenericMPI(PyparWork):
    """Applies a function to the elements of a list."""

    def __init__(self, f: Callable[[Any], Any], l: Sequence[Any], return_: bool = False, debug: bool = False) -> None:  # noqa: E741
        self.applyFunc = f
        self.worklist = l
        self.return_ = return_
        self.debug = debug
        self.count = 0
        self.results: list[Any] = [None] * len(l)

    def getNumWorkItems(self) -> int:
        """Give the length of the list."""
        return len(self.worklist)

    def calcWorkResult(self, worknum: int) -> tuple[int, Any]:
        """Apply the function."""
        return worknum, self.applyFunc(self.worklist[worknum])

    def handleWorkResult(self, result: tuple[int, Any], status: pypar.Status) -> None:
        """Note the result in its place."""
        worknum, value = result
        if self.debug:
            print("Work item completed:", worknum, ":", value)
        self.results[worknum] = value
        self.count += 1


class SimpleMasterSlave(PyparWork):
    """Lets an instance of one class take what instances of a second class make."""

    def __init__(
        self, masterClass: Callable[[], Any], slaveClass: Callable[[], Any], workParams: Sequence[Any]
    ) -> None:
        self.masterClass = masterClass
        self.slaveClass = slaveClass
        self.worklist = workParams

    def getNumWorkItems(self) -> int:
        """Give the length of the list."""
        return len(self.worklist)

    def masterBeforeWork(self) -> None:
        """Make the master's instance."""
        self.masterInstance = self.masterClass()

    def slaveBeforeWork(self) -> None:
        """Make the slave's instance."""
        self.slaveInstance = self.slaveClass()

    def calcWorkResult(self, worknum: int) -> tuple[int, Any]:
        """Let the slave's instance do it."""
        return worknum, self.slaveInstance(self.worklist[worknum])

    def handleWorkResult(self, result: tuple[int, Any], status: pypar.Status) -> None:
        """Give it to the master's instance."""
        self.masterInstance(*result)

    def getMasterInstance(self) -> Any:
        """Give the master's instance.

        Raises
        ------
        RuntimeError
            Nothing was run yet.
        """
        if not hasattr(self, "masterInstance"):
            raise RuntimeError("Sorry.. you need to 'run' first!")
        return self.masterInstance


def RunMasterSlave(
    masterClass: Callable[[], Any],
    slaveClass: Callable[[], Any],
    workParams: Sequence[Any],
    useMPI: bool = True,
    finalRun: bool = True,
) -> Any:
    """Call ``slave(parameter)`` for each parameter on some rank, and ``master(number, result)`` on the first.

    Returns
    -------
    object
        The master's instance, on the first rank.
    """
    if HAVE_MPI and useMPI:
        work = SimpleMasterSlave(masterClass, slaveClass, workParams)
        PyparBalancer(work).run(finalRun)
        return work.getMasterInstance() if MY_RANK == 0 else None
    master, slave = masterClass(), slaveClass()
    for number, parameter in enumerate(workParams):
        master(number, slave(parameter))
    return master


def foreach(
    f: Callable[[Any], Any],
    l: Sequence[Any],  # noqa: E741
    useMPI: bool = True,
    return_: bool = False,
    debug: bool = False,
    finalRun: bool = True,
) -> Any:
    """Call ``f(element)`` for each element of a list.

    Parameters
    ----------
    f, l
        Function and list, the same on all ranks.
    useMPI
        If false, this rank does everything.
    return_
        Give the results.
    debug
        Print what is going on.
    finalRun
        Leave MPI afterwards; all ranks but the first exit. Say False for every call but the last.

    Returns
    -------
    list or None
        With `return_` the results in the order of `l`, on the first rank (elsewhere a string that says so).
    """
    if HAVE_MPI and useMPI:
        work = GenericMPI(f, l, return_, debug)
        PyparBalancer(work).run(finalRun)
        if not return_:
            return None
        return work.results if MY_RANK == 0 else f"You don't get results in this rank!:{MY_RANK}"
    results = []
    for element in l:
        results.append(f(element))
        if debug:
            print("Work item completed:", len(results) - 1, ":", results[-1])
    return results if return_ else None
