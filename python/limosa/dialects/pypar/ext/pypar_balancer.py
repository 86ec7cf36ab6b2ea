"""Master and slaves: rank 0 hands out numbered pieces of work, each of the others does the next as soon as it is free.

Derive from `PyparWork`, and run it with `PyparBalancer` on two ranks or more. As upstream, except that only
``debug=True`` prints what is going on.
"""

import sys
from typing import Any

from limosa.dialects import pypar

PYPAR_WORKTAG = 1
PYPAR_DIETAG = 2


def mprint(txt: object) -> None:
    """Print with the rank in front, indented by it."""
    print(" " * 8 * pypar.rank() + f"-{pypar.rank()}-{txt}")


class PyparWork:
    """The work: derive from it and fill in what is needed."""

    balancer: "PyparBalancer"
    pypar_id: int
    pypar_numprocs: int
    pypar_node: str

    def uplink(self, balancer: "PyparBalancer", myid: int, numprocs: int, node: str) -> None:
        """Be told by the balancer where we are."""
        self.balancer = balancer
        self.pypar_id = myid
        self.pypar_numprocs = numprocs
        self.pypar_node = node

    def getNumWorkItems(self) -> int:
        """Give the number of pieces of work; on the master."""
        raise NotImplementedError("derive from PyparWork and define getNumWorkItems")

    def calcWorkResult(self, worknum: int) -> Any:
        """Do a piece of work; on a slave."""
        raise NotImplementedError("derive from PyparWork and define calcWorkResult")

    def handleWorkResult(self, result: Any, status: pypar.Status) -> None:
        """Take the result of a piece of work; on the master."""

    def masterBeforeWork(self) -> None:
        """Be called on the master before the first piece of work."""

    def slaveBeforeWork(self) -> None:
        """Be called on each slave before the first piece of work."""

    def masterAfterWork(self) -> None:
        """Be called on the master after the last result."""

    def slaveAfterWork(self) -> None:
        """Be called on each slave after the last piece of work."""

    def msgprint(self, txt: object) -> None:
        """Print with the rank in front, indented by it."""
        mprint(txt)


class PyparBalancer:
    """Hands out the work.

    Parameters
    ----------
    work
        The work, the same on all ranks.
    debug
        Print what is going on.

    Raises
    ------
    Exception
        There is only one rank.
    """

    def __init__(self, work: PyparWork, debug: bool = False) -> None:
        self.numprocs = pypar.size()
        self.myid = pypar.rank()
        self.node = pypar.get_processor_name()
        self.debug = debug
        self.work = work
        if self.numprocs < 2:
            raise Exception(
                "PyparBalancer must run on at least 2 processes for the Master Slave paradigm to make sense."
            )
        work.uplink(self, self.myid, self.numprocs, self.node)
        self.numworks = work.getNumWorkItems()
        self._say(f"initialised on proc {self.myid} of {self.numprocs} on node {self.node}")

    def _say(self, text: str) -> None:
        if self.debug:
            print(f"[{'MASTER ' if self.myid == 0 else f'SLAVE {self.myid}'}]: {text}", flush=True)

    def master(self) -> None:
        """Hand out everything and take the results."""
        handed_out = min(self.numprocs - 1, self.numworks)
        for worknum in range(handed_out):
            pypar.send(worknum, destination=worknum + 1, tag=PYPAR_WORKTAG)
            self._say(f'sent first work "{worknum}" to node {worknum + 1}')
        for completed in range(1, self.numworks + 1):
            result, status = pypar.receive(source=pypar.any_source, tag=PYPAR_WORKTAG, return_status=True)
            self._say(f"received result from node {status.source}; {completed} completed")
            if handed_out < self.numworks:
                pypar.send(handed_out, destination=status.source, tag=PYPAR_WORKTAG)
                self._say(f'sent work "{handed_out}" to node {status.source}')
                handed_out += 1
            self.work.handleWorkResult(result, status)
        for slave in range(1, self.numprocs):
            pypar.send("#", destination=slave, tag=PYPAR_DIETAG)

    def slave(self) -> None:
        """Do what the master hands out."""
        while True:
            worknum, status = pypar.receive(source=0, tag=pypar.any_tag, return_status=True)
            if status.tag == PYPAR_DIETAG:
                self._say("received termination")
                return
            self._say(f"work number is {worknum}")
            pypar.send(self.work.calcWorkResult(worknum), destination=0, tag=PYPAR_WORKTAG)

    def run(self, finalRun: bool = True) -> None:
        """Do all the work. After the last run MPI is left, and the slaves exit."""
        if self.myid == 0:
            self.work.masterBeforeWork()
            self.master()
            self.work.masterAfterWork()
        else:
            self.work.slaveBeforeWork()
            self.slave()
            self.work.slaveAfterWork()
        if finalRun:
            pypar.finalize()
            if self.myid != 0:
                sys.exit()


class PyparDemoWork(PyparWork):
    """An example: adds 1 to twenty numbers."""

    def __init__(self) -> None:
        self.worklist = [float(i) for i in range(20)]
        self.resultlist = [0.0] * 20

    def getNumWorkItems(self) -> int:
        """Give the length of the list."""
        return len(self.worklist)

    def calcWorkResult(self, worknum: int) -> list[Any]:
        """Add 1; the number of the work comes with the result."""
        return [worknum, self.worklist[worknum] + 1]

    def handleWorkResult(self, result: list[Any], status: pypar.Status) -> None:
        """Note the result."""
        self.resultlist[result[0]] = result[1]

    def masterAfterWork(self) -> None:
        """Show the results."""
        print(self.resultlist)


if __name__ == "__main__":
    PyparBalancer(PyparDemoWork(), True).run()
