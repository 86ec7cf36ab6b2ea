package org.limosa.engine.local;

/** What to do about a hang. */
enum HangHint {
    BEFORE_THE_END, SAME_ORDER, TO_ITSELF, RECEIVE_FIRST, SEND_FIRST, COMMUNICATOR, TAG, SOURCE;

    /** The names of an interface for programs. */
    enum Language {
        MPI("Sendrecv", "Isend", "Irecv", "MPI.ANY_TAG", "MPI.ANY_SOURCE", "MPI.Finalize"),
        OPEN_MPI("sendRecv", "iSend", "iRecv", "MPI.ANY_TAG", "MPI.ANY_SOURCE", "MPI.Finalize"),
        LIMOSA("sendReceive", "sendAsync", "receiveAsync", "Tag.ANY", "Source.ANY", "the world is closed");

        private final String exchange;
        private final String send;
        private final String receive;
        private final String anyTag;
        private final String anySource;
        private final String end;

        Language(String exchange, String send, String receive, String anyTag, String anySource, String end) {
            this.exchange = exchange;
            this.send = send;
            this.receive = receive;
            this.anyTag = anyTag;
            this.anySource = anySource;
            this.end = end;
        }
    }

    String text(Language words) {
        return switch (this) {
            case BEFORE_THE_END -> "every message needs a send and a receive, and every collective call all ranks of "
                    + "its communicator, before " + words.end;
            case SAME_ORDER ->
                "all ranks of a communicator must make the same collective calls in the same order";
            case TO_ITSELF ->
                "a rank that sends to itself needs a receive that is posted before, or " + words.exchange;
            case RECEIVE_FIRST -> "each of them receives before it sends: let one send first, or use " + words.exchange
                    + " or " + words.receive;
            case SEND_FIRST -> "each of them sends before it receives, which large messages cannot survive: use "
                    + words.exchange + ", or " + words.send + " or " + words.receive;
            case COMMUNICATOR -> "a message is received only on the communicator that it was sent on";
            case TAG ->
                "a message is received only with the tag that it was sent with, or with " + words.anyTag;
            case SOURCE -> "a message is received only from the rank that sent it, or from " + words.anySource;
        };
    }
}
