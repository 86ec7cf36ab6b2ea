"""Scientific.BSP: sequences shared out, values that travel, accumulators, global classes."""

import operator

from Scientific.BSP import *

square = ParFunction(lambda numbers: [x**2 for x in numbers])
printed = ParRootFunction(print)

# squares of a distributed sequence
results = square(ParSequence(range(10)))
printed("squares", results.reduce(operator.add, []))

# a loop over the items, invalid where a processor has none left
numbers = ParRootSequence(ParRootFunction(lambda: list(range(7)))())
total = ParAccumulator(operator.add, 0)
for item in ParIterator(numbers):
    total.addValue(item * item)
printed("sum of squares", total.calculateTotal())
count = ParAccumulator(operator.add, 0)
for index in ParIndexIterator(numbers):
    count.addValue(ParValue(numbers.value)[index] >= ParConstant(0))
assert count.calculateTotal().broadcast().value == 7 == numbers.totalLength().value

# neighbours exchange values
me = ParData(lambda pid, nprocs: pid)
right = ParData(lambda pid, nprocs: [(pid + 1) % nprocs])
left = ParData(lambda pid, nprocs: (pid - 1) % nprocs)
assert (me.put(right)[0] == left).alltrue() and (me.get(right).value) == right.value
assert (
    me.fullExchange().value == list(range(numberOfProcessors))
    and me.broadcast(numberOfProcessors - 1).value == numberOfProcessors - 1
)
assert me.accumulate(operator.add, 0).value == processorID * (processorID + 1) // 2
assert (
    not (me > me + 0).anytrue()
    and (me == processorID).alltrue()
    and repr(me) == "ParData[%d](%d)" % (processorID, processorID)
)
sent = ParMessages(ParData(lambda pid, nprocs: [((pid + 1) % nprocs, "from %d" % pid)]))
assert sent.processorIds().value == right.value and sent.exchange().value == ["from %d" % left.value]
both = ParTuple(me, right).put(right).value
assert (
    both == [[left.value, [processorID]]]
    and (-me + me).value == 0
    and divmod(me, ParConstant(2))[1].value == processorID % 2
)
nothing = ParValue(None, 0)
assert (
    not (nothing + me).valid and repr(nothing) == "<ParValue object (no valid data)>" and me.real.value == processorID
)


# a global class: one object whose parts talk to each other
class _Ring(ParBase):
    def __parinit__(self, pid, nprocs, start):
        self.pid, self.nprocs, self.value = pid, nprocs, start + pid

    def turn(self, steps):
        for _ in range(steps):
            self.value = self.put(self.value, [(self.pid + 1) % self.nprocs])[0]
        return self.value

    def ask(self, pid):
        return self.get(self.value, [pid])[0]

    def check(self, x):
        return "invalid" if is_invalid(x) else x


Ring = ParClass(_Ring)
ring = Ring(ParConstant(100))
assert ring.value.value == 100 + processorID  # ring.value is the local part
assert ring.turn(numberOfProcessors).value == 100 + processorID and ring.turn(ParConstant(1)).value == 100 + left.value
assert ring.ask(0).value == 100 + (numberOfProcessors - 1) and ring.check(nothing).value == "invalid"
printed("done on", ParConstant(numberOfProcessors))
