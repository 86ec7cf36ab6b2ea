import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Prequest;
import mpi.Request;
import mpi.Status;

/** Waiting for and testing one, any, some and all of several requests, of numbers and of objects. */
public class Requests {
    static final int N = 6;
    static Intracomm world;
    static int rank;
    static int size;

    static Object[] buffers(Datatype type) {
        Object[] buffers = new Object[N];
        for (int i = 0; i < N; i++) {
            buffers[i] = type == MPI.OBJECT ? new Object[1] : new int[1];
        }
        return buffers;
    }

    static Object value(Object buffer) {
        return buffer instanceof int[] numbers ? numbers[0] : ((Object[]) buffer)[0];
    }

    static Status at(int index, Status status) {
        status.index = index;
        return status;
    }

    interface Waiter {
        /** Completes at least one; their statuses, or null if there is none left. */
        Status[] step(Request[] requests);
    }

    static void collect(String name, Datatype type, Waiter waiter) {
        int other = size - 1 - rank;
        Object[] received = buffers(type);
        Request[] requests = new Request[N];
        for (int i = 0; i < N; i++) {
            requests[i] = world.Irecv(received[i], 0, 1, type, other, i);
        }
        List<Request> sent = new ArrayList<>();
        for (int i = N - 1; i >= 0; i--) {
            Object buffer = type == MPI.OBJECT ? new Object[] {10 * other + i} : new int[] {10 * other + i};
            sent.add(world.Isend(buffer, 0, 1, type, other, i));
        }
        boolean[] seen = new boolean[N];
        int done = 0;
        while (done < N) {
            Status[] some = waiter.step(requests);
            Check.that(some != null, name + ": requests are left");
            for (Status status : some) {
                Check.that(!seen[status.index], name + ": twice " + status.index);
                seen[status.index] = true;
                Check.same(status.index, status.tag, name + ": tag");
                Check.same(10 * rank + status.index, value(received[status.index]), name + ": value");
                done++;
            }
        }
        Check.same(MPI.UNDEFINED, Request.Waitany(requests).index, name + ": none is active");
        Check.that(Request.Waitsome(requests) == null, name + ": none is active");
        Request.Waitall(sent.toArray(new Request[0]));
        for (Request request : requests) {
            Check.that(request.Is_null(), name + ": complete requests are null");
        }
    }

    /**
     * Returns once all messages to the own rank up to this tag can be matched: the end of a send does not say that its
     * message has arrived. Messages do not overtake each other, so the last one of several is enough.
     */
    static void arrived(int tag) {
        world.Probe(rank, tag);
    }

    /** A completion that Testall has seen before all are complete is there for the next call. */
    static void kept(String name, Waiter waiter) {
        int[] received = new int[2];
        Prequest again = world.Recv_init(received, 1, 1, MPI.INT, rank, 12);
        again.Start();
        world.Isend(new int[] {7}, 0, 1, MPI.INT, rank, 11).Wait();
        arrived(11);
        Request[] requests = {again, world.Irecv(received, 0, 1, MPI.INT, rank, 11)};
        for (int i = 0; i < 100; i++) {
            Check.that(Request.Testall(requests) == null, "Testall before " + name + ": one is not complete");
            Check.that(!Request.testAll(requests), "testAll before " + name + ": one is not complete");
        }
        Check.that(!requests[1].Is_null(), name + ": a request that Testall has not completed is active");
        Status[] found = waiter.step(requests);
        Check.same(1, found.length, name + ": completions after Testall");
        Check.same(1, found[0].index, name + ": index");
        Check.same(rank, found[0].source, name + ": source");
        Check.same(11, found[0].tag, name + ": tag");
        Check.same(1, found[0].Get_count(MPI.INT), name + ": count");
        Check.that(requests[1].Is_null(), name + ": complete requests are null");
        Request sent = world.Isend(new int[] {8}, 0, 1, MPI.INT, rank, 12);
        while (Request.Testall(new Request[] {again, world.Irecv(received, 0, 1, MPI.INT, MPI.PROC_NULL, 0)}) == null) {
            Check.fails(again::Start, "the request is active");
        }
        sent.Wait();
        again.Start();
        again.Cancel();
        Check.that(again.Wait().Test_cancelled(), name + ": a cancelled persistent receive");
        again.Free();
        Check.same(new int[] {7, 8}, received, name + ": received");
    }

    /** If one of several fails, the statuses of the others are not lost. */
    static void beside(String name, Waiter waiter) {
        Request[] sent = {
            world.Isend(new int[] {7}, 0, 1, MPI.INT, rank, 11), world.Isend(new int[9], 0, 9, MPI.INT, rank, 13)
        };
        arrived(13);
        Request[] requests = {
            world.Irecv(new int[1], 0, 1, MPI.INT, rank, 11), world.Irecv(new int[1], 0, 1, MPI.INT, rank, 13)
        };
        Request.Waitall(sent);
        Check.fails(() -> waiter.step(requests));
        Check.same(11, requests[0].Wait().tag, name + ": the status beside a failure");
    }

    /** An arena cannot be closed while a request uses its memory. */
    static void arenas() {
        Arena arena = Arena.ofShared();
        MemorySegment memory = arena.allocate(8);
        ByteBuffer buffer = memory.asByteBuffer();
        Request[] requests = {
            world.Irecv(memory, 0, 8, MPI.BYTE, rank, 14), world.Irecv(buffer, 0, 8, MPI.BYTE, rank, 15)
        };
        Check.throwsA(IllegalStateException.class, arena::close);
        world.Send(new byte[8], 0, 8, MPI.BYTE, rank, 14);
        requests[0].Wait();
        Check.throwsA(IllegalStateException.class, arena::close);
        requests[1].Cancel();
        Check.that(requests[1].Wait().Test_cancelled(), "a cancelled receive into an arena");
        Request sent = world.Issend(memory, 0, 8, MPI.BYTE, rank, 16);
        Check.throwsA(IllegalStateException.class, arena::close);
        world.Recv(new byte[8], 0, 8, MPI.BYTE, rank, 16);
        sent.Wait();
        Prequest again = world.Recv_init(memory, 0, 8, MPI.BYTE, rank, 17);
        again.Start();
        Check.throwsA(IllegalStateException.class, arena::close);
        again.Cancel();
        again.Wait();
        arena.close();
        Check.throwsA(IllegalStateException.class, again::Start);
        again.Free();
    }

    public static void main(String[] args) {
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.Rank();
        size = world.Size();
        for (Datatype type : new Datatype[] {MPI.INT, MPI.OBJECT}) {
            collect("Waitany", type, requests -> new Status[] {Request.Waitany(requests)});
            collect("Waitsome", type, Request::Waitsome);
            collect("Testsome", type, Request::Testsome);
            collect("Testany", type, requests -> {
                Status status = Request.Testany(requests);
                return status == null ? new Status[0] : new Status[] {status};
            });
            collect("Waitall", type, Request::Waitall);
            collect("Testall", type, requests -> {
                Status[] all = Request.Testall(requests);
                return all == null ? new Status[0] : all;
            });
            collect("Wait", type, requests -> {
                for (int i = 0; i < N; i++) {
                    if (!requests[i].Is_null()) {
                        return new Status[] {at(i, requests[i].Wait())};
                    }
                }
                return null;
            });
            collect("Test", type, requests -> {
                for (int i = 0; i < N; i++) {
                    Status status = requests[i].Is_null() ? null : requests[i].Test();
                    if (status != null) {
                        return new Status[] {at(i, status)};
                    }
                }
                return new Status[0];
            });
        }
        kept("Wait", requests -> new Status[] {at(1, requests[1].Wait())});
        kept("Test", requests -> new Status[] {at(1, requests[1].Test())});
        kept("Waitany", requests -> new Status[] {Request.Waitany(requests)});
        kept("Testany", requests -> new Status[] {Request.Testany(requests)});
        kept("Waitsome", Request::Waitsome);
        kept("Testsome", Request::Testsome);
        beside("Waitall", Request::Waitall);
        beside("Testall", Request::Testall);
        beside("Waitsome", Request::Waitsome);
        beside("Testsome", Request::Testsome);
        Request[] none = {null, MPI.REQUEST_NULL};
        Check.same(2, Request.Waitall(none).length, "null requests");
        int[] landing = {5};
        Request never = world.Irecv(landing, 0, 1, MPI.INT, rank, 99);
        never.Cancel();
        Check.that(never.Wait().Test_cancelled(), "a cancelled receive");
        Check.same(5, landing[0], "the buffer of a cancelled receive");
        Request neverObject = world.Irecv(new Object[1], 0, 1, MPI.OBJECT, rank, 99);
        neverObject.Cancel();
        Check.that(neverObject.Wait().Test_cancelled(), "a cancelled receive of objects");
        arenas();
        Check.end();
    }
}
