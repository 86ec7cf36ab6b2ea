package org.limosa.engine;

/** How values of one kind go between processes of a communicator. Messages of two processes keep their order. */
public interface Channel<T> {
    int rank();

    int size();

    void send(T value, int dest);

    T receive(int source);

    /** Sends to one process while it receives from another. */
    T exchange(T value, int dest, int source);
}
