import java.nio.ByteBuffer;
import mpi.Errhandler;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Request;
import mpi.Status;

/** The methods and constants of class MPI, error handlers, attributes, and threads. */
public class Environment {
    static Intracomm world;
    static int rank;
    static int size;

    static void time() {
        Check.that(MPI.Wtick() > 0 && MPI.Wtick() <= 1e-6, "Wtick");
        double begin = MPI.Wtime();
        double now = begin;
        while (now == begin) {
            now = MPI.Wtime();
        }
        Check.that(now > begin && now < begin + 0.9, "Wtime has a resolution below a second");
    }

    static String nameOf(int comparison) {
        switch (comparison) {
            case MPI.IDENT:
                return "IDENT";
            case MPI.CONGRUENT:
                return "CONGRUENT";
            case MPI.SIMILAR:
                return "SIMILAR";
            case MPI.UNEQUAL:
                return "UNEQUAL";
            default:
                return "none";
        }
    }

    static void constants() {
        Check.same("IDENT", nameOf(Intracomm.Compare(world, world)), "Compare");
        Check.that(world.Split(MPI.UNDEFINED, 0) == MPI.COMM_NULL, "COMM_NULL");
        Check.that(MPI.GROUP_NULL == null && MPI.NULL == null, "null");
        Check.same(size, MPI.NUM_OF_PROCESSORS, "NUM_OF_PROCESSORS");
        Check.that(!MPI.DEBUG && MPI.SEND_OVERHEAD >= 0 && MPI.RECV_OVERHEAD >= 0, "constants of MPJ Express");
        for (Status empty : new Status[] {MPI.EMPTY_STATUS, new Status()}) {
            Check.same(0, empty.Get_count(MPI.INT), "count of an empty status");
            Check.same(MPI.ANY_SOURCE, empty.source, "source of an empty status");
            Check.same(MPI.ANY_TAG, empty.tag, "tag of an empty status");
            Check.that(!empty.Test_cancelled(), "an empty status");
        }
        Check.that(MPI.PROC_NULL < 0 && MPI.PROC_NULL != MPI.ANY_SOURCE && MPI.PROC_NULL != MPI.UNDEFINED, "PROC_NULL");
    }

    static void attributes() {
        int largest = world.Attr_get(MPI.TAG_UB);
        int[] got = new int[1];
        Request request = world.Isend(new int[] {5}, 0, 1, MPI.INT, rank, largest);
        Check.same(largest, world.Recv(got, 0, 1, MPI.INT, rank, largest).tag, "the largest tag");
        request.Wait();
        if (largest < Integer.MAX_VALUE) {
            Check.fails(() -> world.Send(got, 0, 1, MPI.INT, rank, largest + 1), "tag is " + (largest + 1));
        }
        Object asObject = world.Attr_get(MPI.HOST);
        Check.same(MPI.PROC_NULL, asObject, "HOST");
        Check.same(rank, (int) world.Attr_get(MPI.IO), "IO");
        Check.same(0, (int) world.Attr_get(77), "an attribute that is not set");
        Check.fails(() -> world.Attr_put(MPI.TAG_UB, 1), "Attr_put", "predefined");
    }

    static void handlers() {
        Check.same(1, Errhandler.FATAL, "FATAL");
        Check.same(0, Errhandler.RETURN, "RETURN");
        Check.that(MPI.ERRORS_ARE_FATAL != MPI.ERRORS_RETURN, "two handlers");
        for (Errhandler handler : new Errhandler[] {MPI.ERRORS_RETURN, MPI.ERRORS_ARE_FATAL}) {
            MPI.Errorhandler_set(handler);
            Check.that(MPI.Errorhandler_get() != null, "Errorhandler_get");
            world.Errhandler_set(handler);
            Check.that(world.Errorhandler_get() == handler, "Errhandler_set");
            world.Errorhandler_set(handler);
            Check.that(world.Errhandler_get() == handler, "Errorhandler_set");
            Check.fails(() -> world.Send(new int[1], 0, 1, MPI.INT, size, 0), "no destination");
        }
        Check.that(new MPIException().getMessage() == null, "no text");
        Check.same("text", new MPIException("text").getMessage(), "text");
        Throwable cause = new IllegalStateException("cause");
        Check.that(new MPIException(cause).getCause() == cause, "cause");
    }

    /** Room for exactly these messages; no rank receives before all were sent. */
    static void buffers() {
        Check.that(MPI.Buffer_detach() == null, "nothing was attached");
        Check.fails(() -> world.Bsend(new int[1], 0, 1, MPI.INT, rank, 0), "Bsend", "Buffer_attach");
        int each = world.Pack_size(1000, MPI.DOUBLE) + MPI.BSEND_OVERHEAD;
        for (ByteBuffer room : new ByteBuffer[] {ByteBuffer.allocate(3 * each), ByteBuffer.allocateDirect(3 * each)}) {
            MPI.Buffer_attach(room);
            Check.fails(() -> MPI.Buffer_attach(room), "Buffer_attach", "attached already");
            double[] sent = new double[1000];
            for (int i = 0; i < 3; i++) {
                sent[999] = rank + i;
                world.Bsend(sent, 0, 1000, MPI.DOUBLE, (rank + 1) % size, i);
            }
            for (int i = 0; i < 3; i++) {
                double[] got = new double[1000];
                world.Recv(got, 0, 1000, MPI.DOUBLE, (rank + size - 1) % size, i);
                Check.same((double) (rank + size - 1) % size + i, got[999], "Bsend");
            }
            MPI.Buffer_detach();
        }
        Check.fails(() -> MPI.Buffer_attach((byte[]) null), "Buffer_attach", "null");
    }

    static void threads() {
        int[] levels = {MPI.THREAD_SINGLE, MPI.THREAD_FUNNELED, MPI.THREAD_SERIALIZED, MPI.THREAD_MULTIPLE};
        Check.same(new int[] {1, 2, 3, 4}, levels, "levels");
        Check.same(MPI.THREAD_MULTIPLE, MPI.queryThread(), "queryThread");
        Check.that(MPI.isMainThread(), "the thread that has called Init");
        boolean[] inOther = {true};
        int[] got = new int[1];
        Thread other = new Thread(() -> {
            inOther[0] = MPI.isMainThread();
            MPI.COMM_WORLD.Send(new int[] {rank}, 0, 1, MPI.INT, rank, 9);
        });
        other.start();
        world.Recv(got, 0, 1, MPI.INT, rank, 9);
        try {
            other.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        Check.that(!inOther[0], "another thread");
    }

    /** MPJ Express's way to start, after the end. */
    static void again() {
        world.Barrier();
        MPI.Finalize();
        Check.that(!MPI.Initialized(), "after Finalize");
        Check.fails(() -> MPI.Get_processor_name(), "MPI.Finalize has");
        MPI.initThread(MPI.THREAD_MULTIPLE, 0, new String[0]);
        Check.same(size, MPI.COMM_WORLD.Size(), "initThread");
    }

    public static void main(String[] args) {
        time();
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.Rank();
        size = world.Size();
        constants();
        attributes();
        handlers();
        buffers();
        threads();
        if (args.length == 0) {
            again();
        }
        Check.end();
    }
}
