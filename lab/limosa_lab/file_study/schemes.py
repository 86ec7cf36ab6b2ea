"""Broadcast and aggregation by message files, and over a network, in simulated time.

The models follow the schemes that were published for message files (a message file, then a lock file):

* ``central``: all files in one file system that all hosts share. A plain broadcast writes the message once, then a link
  to it for every receiver, then a lock for each of them. Receivers look for their lock again and again, and each look
  is work for the same file system.
* ``local``: files in a file system of each host. To another host a copy program carries the message and then the lock,
  receiver by receiver. Receivers look in their own host's file system.
* ``network``: a message takes a latency and its bytes at a bandwidth; the sender is busy for a part of that.

Plain: the root sends to all ranks. Node-aware: the root sends to one leader per host (its lowest rank), and each leader
to the others of its host, by a multicast inside its host's file system.

Ranks are placed on hosts in blocks. All times are in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from limosa_lab.file_study.simulator import Condition, Delay, Process, Server, Simulation, Use


@dataclass(frozen=True)
class Costs:
    """What operations take."""

    #: Operations of a file system of one host: create a small file (or link), write and read a byte, look for a file.
    local_create: float
    local_look: float
    byte: float
    #: Those of the file system that all hosts share, which serves `central_width` requests at a time.
    central_create: float
    central_look: float
    central_byte: float
    central_width: int
    #: Time between two looks of a receiver.
    interval: float
    #: To start a copy to another host, and its time for a byte.
    copy: float
    copy_byte: float
    #: A message over the network: until it arrives, of which the sender is busy, and for a byte.
    latency: float
    overhead: float
    network_byte: float


#: Beyond this number of ranks looks are not simulated one by one.
FEW = 32


class FileSystem:
    """A file system, and what its operations take.

    Receivers that look for a file do so at intervals, and each look is a request. With `one_by_one` these requests are
    simulated; otherwise their effect on the others is computed from how many look (`_delay`), since thousands of
    receivers look millions of times.
    """

    def __init__(self, create: float, look: float, byte: float, width: int, interval: float, one_by_one: bool) -> None:
        self.server = Server(width)
        self.create, self.look, self.byte = create, look, byte
        self.width, self.interval, self.one_by_one = width, interval, one_by_one
        self.looking = 0
        self.looks = 0.0
        self._since = 0.0

    def write(self, size: int) -> Process:
        """Create a file of so many bytes."""
        return self._request(self.create + size * self.byte)

    def read(self, size: int) -> Process:
        """Open a file and read so many bytes."""
        return self._request(self.look + size * self.byte)

    def _request(self, seconds: float) -> Process:
        if not self.one_by_one:
            yield Delay(self._delay())
        yield Use(self.server, seconds)

    def find(self, simulation: Simulation, lock: Condition) -> Process:
        """Look for a file until it is there."""
        if self.one_by_one:
            while True:
                yield Use(self.server, self.look)
                if lock.is_true:
                    return
                yield Delay(self.interval)
        self._change(simulation.now, 1)
        yield lock
        cycle = self._cycle()
        self._change(simulation.now, -1)
        # Half a cycle passes on the average until it looks again.
        yield Delay(cycle / 2)

    def requests(self) -> int:
        """Give the number of all requests."""
        return self.server.requests + round(self.looks)

    def _cycle(self) -> float:
        """Give the time from one look of a receiver to its next one."""
        return max(self.interval + self.look, self.looking * self.look / self.width)

    def _delay(self) -> float:
        """Give how long a request waits for looks.

        If looks keep the server busy, for all receivers that are not between two looks; otherwise seldom for one.
        """
        work = self.looking * self.look / self.width
        idle = self.interval + self.look - work
        return max(work - self.interval, self.look * min(1.0, work / (2 * idle)) if idle > 0 else 0.0)

    def _change(self, now: float, by: int) -> None:
        if self.looking:
            self.looks += self.looking * (now - self._since) / self._cycle()
        self._since = now
        self.looking += by


@dataclass(frozen=True)
class Outcome:
    """What a simulated operation took."""

    seconds: float
    #: Requests to the file system that all hosts share.
    central_requests: int


@dataclass(frozen=True)
class Shape:
    """How many ranks there are, and how many on each host."""

    ranks: int
    per_host: int

    def host(self, rank: int) -> int:
        """Give the host of a rank."""
        return rank // self.per_host

    def leaders(self) -> range:
        """Give the lowest ranks of all hosts."""
        return range(0, self.ranks, self.per_host)

    def members(self, leader: int) -> range:
        """Give the other ranks of a leader's host."""
        return range(leader + 1, min(leader + self.per_host, self.ranks))


class Model:
    """A simulation with the file systems of some hosts."""

    def __init__(self, shape: Shape, costs: Costs) -> None:
        self.shape, self.costs = shape, costs
        self.simulation = Simulation()
        self.central = FileSystem(
            costs.central_create,
            costs.central_look,
            costs.central_byte,
            costs.central_width,
            costs.interval,
            shape.ranks <= FEW,
        )
        local = (costs.local_create, costs.local_look, costs.byte, 1, costs.interval, shape.ranks <= FEW)
        self.local = [FileSystem(*local) for _ in shape.leaders()]
        self.locks = [Condition() for _ in range(shape.ranks)]

    def run(self, processes: Iterator[Process]) -> Outcome:
        """Run these processes to their ends."""
        for process in processes:
            self.simulation.start(process)
        return Outcome(self.simulation.run(), self.central.requests())

    def multicast(self, fs: FileSystem, receivers: range | list[int], size: int) -> Process:
        """Write a message once, a link to it for each receiver, and then all locks."""
        if len(receivers) == 0:
            return
        yield from fs.write(size)
        for _ in receivers:
            yield from fs.write(0)
        for receiver in receivers:
            yield from fs.write(0)
            self.simulation.fulfil(self.locks[receiver])

    def copies(self, source: int, receivers: range | list[int], size: int) -> Process:
        """Write message and lock here, and have each receiver's host get both in turn."""
        fs = self.local[self.shape.host(source)]
        yield from fs.write(size)
        yield from fs.write(0)
        for receiver in receivers:
            yield Delay(self.costs.copy + size * self.costs.copy_byte)
            yield Delay(self.costs.copy)
            self.simulation.fulfil(self.locks[receiver])

    def receive(self, fs: FileSystem, rank: int, size: int) -> Process:
        """Wait for a message and read it."""
        yield from fs.find(self.simulation, self.locks[rank])
        yield from fs.read(size)


def broadcast_central(shape: Shape, costs: Costs, size: int) -> Outcome:
    """All receivers get the message from the shared file system."""
    model = Model(shape, costs)
    receivers = range(1, shape.ranks)

    def all_of_them() -> Iterator[Process]:
        yield model.multicast(model.central, receivers, size)
        yield from (model.receive(model.central, rank, size) for rank in receivers)

    return model.run(all_of_them())


def broadcast_central_node_aware(shape: Shape, costs: Costs, size: int) -> Outcome:
    """Leaders get the message from the shared file system, the others from that of their host."""
    model = Model(shape, costs)
    leaders = list(shape.leaders())[1:]
    return model.run(_two_levels(model, model.multicast(model.central, leaders, size), model.central, size))


def broadcast_local(shape: Shape, costs: Costs, size: int) -> Outcome:
    """The root copies the message to every receiver: files on its own host, copies to others."""
    model = Model(shape, costs)
    here = shape.members(0)
    elsewhere = range(min(shape.per_host, shape.ranks), shape.ranks)

    def root() -> Process:
        yield from model.multicast(model.local[0], here, size)
        yield from model.copies(0, elsewhere, size)

    def all_of_them() -> Iterator[Process]:
        yield root()
        for rank in range(1, shape.ranks):
            yield model.receive(model.local[shape.host(rank)], rank, size)

    return model.run(all_of_them())


def broadcast_local_node_aware(shape: Shape, costs: Costs, size: int) -> Outcome:
    """The root copies the message to one leader per host, which passes it on in its host's file system."""
    model = Model(shape, costs)
    leaders = list(shape.leaders())[1:]
    return model.run(_two_levels(model, model.copies(0, leaders, size), None, size))


def _two_levels(model: Model, first: Process, leaders_look_in: FileSystem | None, size: int) -> Iterator[Process]:
    """The root does `first` for the leaders, and all leaders multicast inside their hosts."""

    def leader(rank: int) -> Process:
        own = model.local[model.shape.host(rank)]
        if rank == 0:
            yield from first
        else:
            yield from model.receive(leaders_look_in or own, rank, size)
        yield from model.multicast(own, model.shape.members(rank), size)

    for rank in model.shape.leaders():
        yield leader(rank)
        for member in model.shape.members(rank):
            yield model.receive(model.local[model.shape.host(rank)], member, size)


def _send(model: Model, to: int, size: int) -> Process:
    """Send over the network: busy for a while; the message arrives later."""
    costs = model.costs
    busy = costs.overhead + size * costs.network_byte
    yield Delay(busy)
    model.simulation.start(_arrive(model, to, costs.latency - costs.overhead))


def _arrive(model: Model, to: int, after: float) -> Process:
    yield Delay(max(after, 0.0))
    model.simulation.fulfil(model.locks[to])


def _tree(model: Model, members: list[int], at: int, size: int) -> Process:
    """One member's part of a binomial tree over these ranks."""
    if at > 0:
        yield model.locks[members[at]]
    # Member `at` got the message in the round of its highest bit; it passes it on in the rounds after that.
    step = 1 if at == 0 else 2 ** at.bit_length()
    steps = []
    while at + step < len(members):
        steps.append(step)
        step *= 2
    for each in steps:
        yield from _send(model, members[at + each], size)


def broadcast_network(shape: Shape, costs: Costs, size: int) -> Outcome:
    """A binomial tree over all ranks, as if each were alone on its host."""
    model = Model(shape, costs)
    everybody = list(range(shape.ranks))
    return model.run(_tree(model, everybody, at, size) for at in everybody)


def broadcast_network_node_aware(shape: Shape, costs: Costs, size: int) -> Outcome:
    """A binomial tree over the leaders; the others read what their leader writes in their host's memory."""
    model = Model(shape, costs)
    leaders = list(shape.leaders())

    def leader(at: int) -> Process:
        yield from _tree(model, leaders, at, size)
        yield Delay(costs.overhead + size * costs.byte)

    return model.run(leader(at) for at in range(len(leaders)))


def broadcast_here(shape: Shape, message: float, inside: float, processors: int, aware: bool) -> float:
    """Give the time of a broadcast on one machine whose ranks act as if they were on several hosts.

    There the time goes to processors that all ranks share. A message by files takes `message`, one in memory `inside`,
    half of that at the sender and half at the receiver.
    """
    simulation, processor = Simulation(), Server(processors)
    arrived = [Condition() for _ in range(shape.ranks)]
    leaders = list(shape.leaders())

    def send(receivers: list[int], seconds: float) -> Process:
        for receiver in receivers:
            yield Use(processor, seconds / 2)
            simulation.fulfil(arrived[receiver])

    def rank(me: int) -> Process:
        is_leader = shape.host(me) * shape.per_host == me
        if me > 0:
            yield arrived[me]
            yield Use(processor, (message if not aware or is_leader else inside) / 2)
        if aware:
            yield from send(leaders[1:] if me == 0 else [], message)
            yield from send(list(shape.members(me)) if is_leader else [], inside)
        elif me == 0:
            yield from send(list(range(1, shape.ranks)), message)

    for me in range(shape.ranks):
        simulation.start(rank(me))
    return simulation.run()


BROADCASTS: dict[str, Callable[[Shape, Costs, int], Outcome]] = {
    "central files": broadcast_central,
    "central files, node-aware": broadcast_central_node_aware,
    "local files": broadcast_local,
    "local files, node-aware": broadcast_local_node_aware,
    "network": broadcast_network,
    "network, node-aware": broadcast_network_node_aware,
}


def aggregate(shape: Shape, costs: Costs, total: int, central: bool) -> Outcome:
    """Gather an array of so many bytes, in equal parts, on rank 0 by a binary tree over the ranks.

    In each round half of those that still have data send all of it to their partner.
    """
    model = Model(shape, costs)
    part = -(-total // shape.ranks)
    sent = [Condition() for _ in range(shape.ranks)]

    def rank(me: int) -> Process:
        held, step = 1, 1
        while step < shape.ranks:
            if me & step:
                yield from deliver(me, me - step, held * part)
                return
            if me + step < shape.ranks:
                source = me + step
                fs = model.central if central else model.local[shape.host(me)]
                yield from fs.find(model.simulation, sent[source])
                more = min(step, shape.ranks - source)
                yield from fs.read(more * part)
                held += more
            step *= 2

    def deliver(me: int, to: int, size: int) -> Process:
        fs = model.central if central else model.local[shape.host(me)]
        yield from fs.write(size)
        yield from fs.write(0)
        if not central and shape.host(me) != shape.host(to):
            yield Delay(costs.copy + size * costs.copy_byte)
            yield Delay(costs.copy)
        model.simulation.fulfil(sent[me])

    return model.run(rank(me) for me in range(shape.ranks))
