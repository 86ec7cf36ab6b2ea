package mpi;

import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.limosa.abi.Abi;
import org.limosa.engine.Communicator;
import org.limosa.engine.Envelope;
import org.limosa.engine.Members;
import org.limosa.engine.Mode;
import org.limosa.engine.Operation;
import org.limosa.engine.Type;

/**
 * A communicator: processes that exchange messages.
 *
 * <p>A buffer is a one-dimensional array whose class belongs to the datatype, or direct memory (a direct buffer of
 * java.nio or a {@code MemorySegment}); the offset is in elements, the count in items of the datatype. A receive may be
 * posted for more items than the buffer has room for, as long as the message is not longer than that.
 */
public class Comm extends OpenMpiAttributes implements Cloneable {
    /** What carries the messages; null after Free. */
    private Communicator communicator;

    private final Map<Integer, Integer> attributes = new HashMap<>();
    private Errhandler errhandler = MPI.ERRORS_ARE_FATAL;

    /** Whether the communicator for the messages of Java is there. */
    private boolean hasHidden = true;

    Comm(Communicator communicator) {
        this.communicator = communicator;
        // All ranks are here now. They need not be when objects are sent.
        communicator.hidden();
    }

    /** With processes that may know nothing of Java, so nothing more can be agreed with them now; null for no one. */
    Comm(Communicator communicator, boolean isStrange) {
        this.communicator = communicator;
        hasHidden = !isStrange;
    }

    /** What carries the messages of Java, made now if need be. All processes call it. */
    final Communicator hidden() {
        Communicator made = communicator().hidden();
        hasHidden = true;
        return made;
    }

    private void checkObjects(String function) {
        communicator();
        if (!hasHidden) {
            throw MPIException.of(Abi.MPI_ERR_COMM, function + ": objects cannot go between groups that were started "
                    + "apart; make a copy with dup() in both groups, and use that");
        }
    }

    final Communicator communicator() {
        if (communicator == null) {
            throw MPIException.of(
                    Abi.MPI_ERR_COMM, "the communicator was freed, or is MPI.COMM_NULL");
        }
        return communicator;
    }

    // --- processes ---

    public int Size() throws MPIException {
        return communicator().size();
    }

    public int Rank() throws MPIException {
        return communicator().rank();
    }

    public Group Group() throws MPIException {
        return new Group(communicator().members());
    }

    /** IDENT, CONGRUENT (the same processes in the same order), SIMILAR (in another order) or UNEQUAL. */
    public static int Compare(Comm comm1, Comm comm2) throws MPIException {
        Communicator one = Errors.present("Compare", "a communicator", comm1).communicator();
        Communicator other = Errors.present("Compare", "a communicator", comm2).communicator();
        if (one.isSame(other)) {
            return MPI.IDENT;
        }
        if (one.isInter() != other.isInter()) {
            return MPI.UNEQUAL;
        }
        int local = compare(one.members(), other.members());
        if (one.isInter()) {
            int remote = compare(one.remoteMembers(), other.remoteMembers());
            local = local == MPI.UNEQUAL || remote == MPI.UNEQUAL ? MPI.UNEQUAL
                    : local == MPI.IDENT && remote == MPI.IDENT ? MPI.IDENT : MPI.SIMILAR;
        }
        return local == MPI.IDENT ? MPI.CONGRUENT : local;
    }

    /** Compares two groups, and frees them. */
    private static int compare(Members one, Members other) {
        int result = Group.Compare(new Group(one), new Group(other));
        one.free();
        other.free();
        return result;
    }

    /** A communicator of the same processes for other messages. All processes call it. */
    @Override
    public Comm clone() throws MPIException {
        Comm copy = with(communicator().duplicate());
        copy.attributes.putAll(attributes);
        copy.copyAttributes(this);
        return copy;
    }

    /** As {@link #clone}: Open MPI's name for it. */
    public Comm dup() throws MPIException {
        return clone();
    }

    /** One of the same class. */
    Comm with(Communicator other) {
        return new Comm(other);
    }

    public void Free() throws MPIException {
        end(Communicator::free);
    }

    final void end(Consumer<Communicator> how) {
        how.accept(communicator());
        communicator = null;
    }

    public void free() throws MPIException {
        Free();
    }

    public boolean Is_null() throws MPIException {
        return communicator == null;
    }

    public boolean Test_inter() throws MPIException {
        return communicator().isInter();
    }

    /** CART, GRAPH or UNDEFINED. */
    public int Topo_test() throws MPIException {
        return MPI.UNDEFINED;
    }

    /** Ends all processes of the job with this code. */
    public void Abort(int errorcode) throws MPIException {
        MPI.abort(this, errorcode);
    }

    /** An inter-communicator between two groups; called on the communicator in which the leaders are. */
    public Intercomm Create_intercomm(Comm local_comm, int local_leader, int remote_leader, int tag)
            throws MPIException {
        Errors.present("Create_intercomm", "the local communicator", local_comm);
        return new Intercomm(local_comm.communicator().connect(local_leader, communicator(), remote_leader, tag));
    }

    // --- checks ---

    private int peers() {
        Communicator now = communicator();
        return now.isInter() ? now.remoteSize() : now.size();
    }

    private void checkDest(String function, int dest, int tag) {
        int peers = peers();
        if ((dest < 0 || dest >= peers) && dest != MPI.PROC_NULL) {
            throw Errors.rank(function + ": there is no destination " + dest + "; ranks are 0 to " + (peers - 1));
        }
        if (tag < 0 || tag > MPI.TAG_UB()) {
            throw Errors.tag(function + ": the tag is " + tag + "; tags are 0 to " + MPI.TAG_UB());
        }
    }

    final void checkSource(String function, int source, int tag) {
        int peers = peers();
        if ((source < 0 || source >= peers) && source != MPI.PROC_NULL && source != MPI.ANY_SOURCE) {
            throw Errors.rank(function + ": there is no source " + source + "; ranks are 0 to " + (peers - 1));
        }
        if ((tag < 0 || tag > MPI.TAG_UB()) && tag != MPI.ANY_TAG) {
            throw Errors.tag(function + ": the tag is " + tag + "; tags are 0 to " + MPI.TAG_UB());
        }
    }

    final void checkRoot(String function, int root) {
        if (root < 0 || root >= communicator().size()) {
            throw MPIException.of(Abi.MPI_ERR_ROOT,
                    function + ": there is no root " + root + "; ranks are 0 to " + (communicator().size() - 1));
        }
    }

    // --- messages ---

    private static Type typeOf(Datatype type) {
        return type.base == null ? Type.BYTE : type.base;
    }

    private static void checkMode(String function, Mode mode) {
        if (mode == Mode.BUFFERED && !MPI.isBufferAttached()) {
            throw Errors.buffer(function + ": there is no room for the message; call MPI.Buffer_attach before");
        }
    }

    private MemorySegment outgoing(String function, Object buf, int offset, int count, Datatype type, int dest) {
        if (type == null || !type.isObject) {
            return Layout.outgoing(function, buf, offset, count, type);
        }
        checkObjects(function);
        byte[] stream = Objects.write(function, buf, offset, count, type);
        return dest == MPI.PROC_NULL ? null : MPI.OBJECTS.begin(communicator.hidden(), dest, stream);
    }

    /** Objects that can go as they are; otherwise null. */
    private Object[] handover(String function, Object buf, int offset, int count, Datatype type, int dest) {
        boolean canBe = type != null && type.isObject && dest != MPI.PROC_NULL && communicator().handsObjects(dest);
        return canBe ? Objects.handedOver(function, buf, offset, count, type) : null;
    }

    private void send(
            String function, Object buf, int offset, int count, Datatype type, int dest, int tag, Mode mode) {
        checkDest(function, dest, tag);
        checkMode(function, mode);
        Object[] objects = handover(function, buf, offset, count, type, dest);
        if (objects != null) {
            communicator.startHandover(objects, dest, tag, mode).await();
            return;
        }
        MemorySegment data = outgoing(function, buf, offset, count, type, dest);
        if (dest == MPI.PROC_NULL) {
            return;
        }
        if (mode == Mode.STANDARD && MPI.EAGER.store(data)) {
            MPI.EAGER.send(communicator, data, typeOf(type), dest, tag);
        } else {
            communicator.send(data, typeOf(type), dest, tag, mode);
        }
    }

    /** Sends a message. */
    public void Send(Object buf, int offset, int count, Datatype datatype, int dest, int tag) throws MPIException {
        send("Send", buf, offset, count, datatype, dest, tag, Mode.STANDARD);
    }

    /** Sends a message through the attached buffer. */
    public void Bsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) throws MPIException {
        send("Bsend", buf, offset, count, datatype, dest, tag, Mode.BUFFERED);
    }

    /** Sends a message, and waits until its receive has begun. */
    public void Ssend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) throws MPIException {
        send("Ssend", buf, offset, count, datatype, dest, tag, Mode.SYNCHRONOUS);
    }

    /** Sends a message whose receive has been posted. */
    public void Rsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag) throws MPIException {
        send("Rsend", buf, offset, count, datatype, dest, tag, Mode.READY);
    }

    /** Receives a message. */
    public Status Recv(Object buf, int offset, int count, Datatype datatype, int source, int tag)
            throws MPIException {
        checkSource("Recv", source, tag);
        if (source == MPI.PROC_NULL) {
            return Status.ofNobody();
        }
        if (datatype != null && datatype.isObject) {
            return startReceive("Recv", buf, offset, count, datatype, source, tag).await();
        }
        Landing landing = Landing.of("Recv", buf, offset, count, datatype);
        Envelope envelope = communicator.receive(landing.memory, typeOf(datatype), source, tag);
        landing.finish("Recv", envelope.bytes());
        return new Status(envelope, datatype);
    }

    private Request startSend(
            String function, Object buf, int offset, int count, Datatype type, int dest, int tag, Mode mode) {
        checkDest(function, dest, tag);
        checkMode(function, mode);
        Object[] objects = handover(function, buf, offset, count, type, dest);
        MemorySegment data = objects != null ? null : outgoing(function, buf, offset, count, type, dest);
        if (dest == MPI.PROC_NULL) {
            return new Request(new Pending.OfNobody(false));
        }
        Operation operation = objects != null ? communicator.startHandover(objects, dest, tag, mode)
                : communicator.startSend(data, typeOf(type), dest, tag, mode);
        return new Request(new Pending.OfEngine(function, operation, null, type));
    }

    public Request Isend(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return startSend("Isend", buf, offset, count, datatype, dest, tag, Mode.STANDARD);
    }

    public Request Ibsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return startSend("Ibsend", buf, offset, count, datatype, dest, tag, Mode.BUFFERED);
    }

    public Request Issend(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return startSend("Issend", buf, offset, count, datatype, dest, tag, Mode.SYNCHRONOUS);
    }

    public Request Irsend(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return startSend("Irsend", buf, offset, count, datatype, dest, tag, Mode.READY);
    }

    private Pending startReceive(
            String function, Object buf, int offset, int count, Datatype type, int source, int tag) {
        if (type != null && type.isObject) {
            checkObjects(function);
            return new ObjectReceive(communicator, function, buf, offset, count, type, source, tag);
        }
        Landing landing = Landing.of(function, buf, offset, count, type);
        Operation operation = communicator.startReceive(landing.memory, typeOf(type), source, tag);
        return new Pending.OfEngine(function, operation, landing, type);
    }

    public Request Irecv(Object buf, int offset, int count, Datatype datatype, int source, int tag)
            throws MPIException {
        checkSource("Irecv", source, tag);
        if (source == MPI.PROC_NULL) {
            return new Request(new Pending.OfNobody(false));
        }
        return new Request(startReceive("Irecv", buf, offset, count, datatype, source, tag));
    }

    private Prequest persistentSend(
            String function, Object buf, int offset, int count, Datatype type, int dest, int tag, Mode mode) {
        checkDest(function, dest, tag);
        Layout.check(function, buf, offset, count, type);
        if (dest == MPI.PROC_NULL) {
            return new Prequest(new Pending.OfNobody(true));
        }
        if (type.isObject || buf != null && !Layout.isDirect(buf, type)) {
            return new Prequest(new Pending.Renewed(
                    () -> startSend(function, buf, offset, count, type, dest, tag, mode).pending));
        }
        MemorySegment data = Layout.outgoing(function, buf, offset, count, type);
        Operation operation = communicator.persistentSend(data, typeOf(type), dest, tag, mode);
        return new Prequest(new Pending.OfEngine(function, operation, null, type));
    }

    public Prequest Send_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return persistentSend("Send_init", buf, offset, count, datatype, dest, tag, Mode.STANDARD);
    }

    public Prequest Bsend_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return persistentSend("Bsend_init", buf, offset, count, datatype, dest, tag, Mode.BUFFERED);
    }

    public Prequest Ssend_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return persistentSend("Ssend_init", buf, offset, count, datatype, dest, tag, Mode.SYNCHRONOUS);
    }

    public Prequest Rsend_init(Object buf, int offset, int count, Datatype datatype, int dest, int tag)
            throws MPIException {
        return persistentSend("Rsend_init", buf, offset, count, datatype, dest, tag, Mode.READY);
    }

    public Prequest Recv_init(Object buf, int offset, int count, Datatype datatype, int source, int tag)
            throws MPIException {
        checkSource("Recv_init", source, tag);
        Layout.checkWritable("Recv_init", buf);
        Layout.check("Recv_init", buf, offset, count, datatype);
        if (source == MPI.PROC_NULL) {
            return new Prequest(new Pending.OfNobody(true));
        }
        if (datatype.isObject || buf != null && !Layout.isDirect(buf, datatype)) {
            return new Prequest(new Pending.Renewed(
                    () -> startReceive("Recv_init", buf, offset, count, datatype, source, tag)));
        }
        Landing landing = Landing.of("Recv_init", buf, offset, count, datatype);
        Operation operation = communicator.persistentReceive(landing.memory, typeOf(datatype), source, tag);
        return new Prequest(new Pending.OfEngine("Recv_init", operation, landing, datatype));
    }

    /** Sends to one process while it receives from another. */
    public Status Sendrecv(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype, int dest, int sendtag,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int source, int recvtag)
            throws MPIException {
        checkDest("Sendrecv", dest, sendtag);
        checkSource("Sendrecv", source, recvtag);
        Errors.checkType("Sendrecv", sendtype);
        Errors.checkType("Sendrecv", recvtype);
        boolean plain = !sendtype.isObject && !recvtype.isObject;
        if (!plain || dest == MPI.PROC_NULL || source == MPI.PROC_NULL) {
            Request send = startSend(
                    "Sendrecv", sendbuf, sendoffset, sendcount, sendtype, dest, sendtag, Mode.STANDARD);
            Status status = Recv(recvbuf, recvoffset, recvcount, recvtype, source, recvtag);
            send.Wait();
            return status;
        }
        MemorySegment data = Layout.outgoing("Sendrecv", sendbuf, sendoffset, sendcount, sendtype);
        Landing landing = Landing.of("Sendrecv", recvbuf, recvoffset, recvcount, recvtype);
        Envelope envelope = communicator.exchange(
                data, typeOf(sendtype), dest, sendtag, landing.memory, typeOf(recvtype), source, recvtag);
        landing.finish("Sendrecv", envelope.bytes());
        return new Status(envelope, recvtype);
    }

    /** As {@link #Sendrecv}, with one buffer. */
    public Status Sendrecv_replace(
            Object buf, int offset, int count, Datatype datatype, int dest, int sendtag, int source, int recvtag)
            throws MPIException {
        return Sendrecv(
                buf, offset, count, datatype, dest, sendtag, buf, offset, count, datatype, source, recvtag);
    }

    /** Waits for a message, without receiving it. */
    public Status Probe(int source, int tag) throws MPIException {
        checkSource("Probe", source, tag);
        return source == MPI.PROC_NULL ? Status.ofNobody() : new Status(communicator.probe(source, tag), null);
    }

    /** What {@link #Probe} returns, if a message is there; otherwise null. */
    public Status Iprobe(int source, int tag) throws MPIException {
        checkSource("Iprobe", source, tag);
        if (source == MPI.PROC_NULL) {
            return Status.ofNobody();
        }
        Envelope found = communicator.probeNow(source, tag);
        return found == null ? null : new Status(found, null);
    }

    // --- packing ---

    /** The bytes that so many items take in a packed message. */
    public int Pack_size(int incount, Datatype datatype) throws MPIException {
        Errors.checkType("Pack_size", datatype);
        if (datatype.base == null) {
            throw Errors.type("Pack_size: objects and bounds have no size in bytes");
        }
        return Math.multiplyExact(Math.multiplyExact(incount, datatype.size()), datatype.base.bytes);
    }

    /** Appends items to a packed message; the position behind them. */
    public int Pack(Object inbuf, int offset, int incount, Datatype datatype, byte[] outbuf, int position)
            throws MPIException {
        Errors.checkType("Pack", datatype);
        Errors.present("Pack", "outbuf", outbuf);
        if (datatype.isObject) {
            throw Errors.type("Pack: objects cannot be packed");
        }
        MemorySegment data = Layout.outgoing("Pack", inbuf, offset, incount, datatype);
        long bytes = data == null ? 0 : data.byteSize();
        if (position < 0 || bytes > outbuf.length - position) {
            throw Errors.buffer("Pack: " + bytes + " bytes do not fit into a buffer of " + outbuf.length
                    + " from position " + position + " on");
        }
        if (data != null) {
            MemorySegment.copy(data, 0, MemorySegment.ofArray(outbuf), position, bytes);
        }
        return position + (int) bytes;
    }

    /** Takes items from a packed message; the position behind them. */
    public int Unpack(byte[] inbuf, int position, Object outbuf, int offset, int outcount, Datatype datatype)
            throws MPIException {
        Errors.present("Unpack", "inbuf", inbuf);
        Landing landing = Landing.of("Unpack", outbuf, offset, outcount, datatype);
        int bytes = Pack_size(outcount, datatype);
        if (position < 0 || bytes > inbuf.length - position) {
            throw Errors.buffer("Unpack: " + bytes + " bytes are more than the " + inbuf.length
                    + " of the packed message from position " + position + " on");
        }
        if (bytes > 0) {
            Layout.checkRoom("Unpack", outbuf, offset, outcount, datatype);
            MemorySegment.copy(MemorySegment.ofArray(inbuf), position, landing.memory, 0, bytes);
            landing.finish("Unpack", bytes);
        }
        return position + bytes;
    }

    /** Objects as bytes: mpiJava's name for it. */
    public byte[] Object_Serialize(Object buf, int offset, int count, Datatype type) throws MPIException {
        checkObjects("Object_Serialize", type);
        return Objects.write("Object_Serialize", buf, offset, count, type);
    }

    /** The objects of {@link #Object_Serialize}: up to so many items are put into the buffer. */
    public void Object_Deserialize(Object buf, byte[] bytes, int offset, int count, Datatype type)
            throws MPIException {
        checkObjects("Object_Deserialize", type);
        Layout.check("Object_Deserialize", buf, offset, count, type);
        Objects.read("Object_Deserialize", bytes, buf, offset, count, type);
    }

    private static void checkObjects(String function, Datatype type) {
        if (type == null || !type.isObject) {
            throw Errors.type(function + ": the datatype is " + type + "; it must be made of MPI.OBJECT");
        }
    }

    // --- attributes ---

    /** The value of an attribute; 0 if it is not set. */
    public Integer Attr_get(int keyval) throws MPIException {
        communicator();
        if (keyval == MPI.TAG_UB) {
            return MPI.TAG_UB();
        }
        return attributes.getOrDefault(keyval, keyval == MPI.HOST ? MPI.PROC_NULL : keyval == MPI.IO ? Rank() : 0);
    }

    public void Attr_put(int keyval, int value) throws MPIException {
        communicator();
        if (keyval == MPI.TAG_UB || keyval == MPI.HOST || keyval == MPI.IO) {
            throw Errors.argument("Attr_put: the predefined attributes cannot be changed");
        }
        attributes.put(keyval, value);
    }

    public void Attr_delete(int keyval) throws MPIException {
        communicator();
        attributes.remove(keyval);
    }

    public void Errhandler_set(Errhandler handler) throws MPIException {
        errhandler = handler;
    }

    public void Errorhandler_set(Errhandler handler) throws MPIException {
        errhandler = handler;
    }

    public Errhandler Errhandler_get() throws MPIException {
        return errhandler;
    }

    public Errhandler Errorhandler_get() throws MPIException {
        return errhandler;
    }
}
