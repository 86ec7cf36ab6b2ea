package org.limosa.engine;

/** The send modes of MPI-5, section 3.4. */
public enum Mode {
    STANDARD, BUFFERED, SYNCHRONOUS, READY
}
