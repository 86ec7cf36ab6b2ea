package org.limosa.engine;

/** Ports, at which groups of processes wait for others (MPI-5, section 11.9). */
public interface Ports {
    /** The name of a new port. */
    String open();

    void close(String port);

    void publish(String service, String port);

    void unpublish(String service, String port);

    /** The port that was published. */
    String lookUp(String service);
}
