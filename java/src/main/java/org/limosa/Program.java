package org.limosa;

/** What a rank does. */
@FunctionalInterface
public interface Program {
    /**
     * Runs the program.
     *
     * @param world all ranks of the job
     * @throws Exception to end the job
     */
    void run(World world) throws Exception;
}
