package org.limosa.engine;

/** Whose message it is and how long. */
public record Envelope(int source, int tag, long bytes, boolean cancelled) {}
