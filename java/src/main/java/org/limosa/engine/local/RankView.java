package org.limosa.engine.local;

import java.io.Serializable;
import java.util.List;

/**
 * What a rank does, as told to the rank that looks for hangs.
 *
 * @param rank its number
 * @param state whether it has left
 * @param calls the calls in which its threads sleep
 * @param stuck the program's lines at which others of its threads wait for a lock or for the end of a thread
 * @param strangers how many of its threads sleep that have never sent or received
 * @param lying messages to it that no receive has taken
 */
record RankView(
        int rank, State state, List<CallView> calls, List<String> stuck, int strangers, List<Lying> lying)
        implements Serializable {
    enum State { RUNNING, FINALIZED, ENDED }

    /**
     * A call in which a thread sleeps.
     *
     * @param name what the program knows it by
     * @param language the interface that it belongs to
     * @param line the line of the program that has called it; null if it is not known
     * @param nanos for how long
     * @param awaited what must happen; several if one of them suffices
     */
    record CallView(String name, HangHint.Language language, String line, long nanos, List<Awaited> awaited)
            implements Serializable {}

    /**
     * A message that has come.
     *
     * @param source the rank of the communicator that has sent it
     * @param sender that rank's number in the job
     * @param tag its tag
     * @param context the number of the communicator
     * @param communicator the name of the communicator
     */
    record Lying(int source, int sender, int tag, long context, String communicator) implements Serializable {}

    boolean isRunning() {
        return state == State.RUNNING;
    }

    String howItLeft() {
        return state == State.FINALIZED ? "has left by MPI.Finalize" : "has ended";
    }
}
