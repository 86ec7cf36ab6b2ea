# A message goes round the ring; each process adds a word.
from pypar import *

proc, P, node = rank(), size(), get_processor_name()
if P < 2:
    print("I need at least two processors")
    abort()

if proc == 0:
    msg = "P0"
    send(msg, 1)
    msg, status = receive(P - 1, return_status=True)
    print('Processor 0 received message "%s" of %d bytes from processor %d' % (msg, status.bytes(), status.source))
else:
    msg = receive(proc - 1)
    send(msg + "P%d" % proc, (proc + 1) % P)

# Names that came along with the star.
A = reshape(zeros(6, "d"), (2, 3))
assert product(A.shape) == 6 and "sys" in dir() and types.FunctionType and string.digits and os.sep
finalize()
