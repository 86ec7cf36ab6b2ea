package org.limosa.engine;

import java.util.List;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.local.LocalJob;

/** A program for which there is no MPI library: if no launcher has started it, it is a job of one rank in Java. */
final class Alone {
    /** The variables of launchers that say how many processes they have started. */
    private static final List<String> SIZES =
            List.of("OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE", "PMIX_SIZE");
    private static final String BY_LIMOSA = "LIMOSA_RANK";
    private static final String BY_PMIX = "PMIX_RANK";

    private static Engine only;

    private Alone() {}

    /** What carries the messages, after the reason was said once why it is not the library. */
    static synchronized Engine start(String problem, String chosen) {
        if (only == null) {
            String launcher = launcher();
            if (chosen != null) {
                throw fails(problem + "; name a different file in JAVA_LIMOSA_LIBRARY, or none");
            }
            if (launcher != null) {
                throw fails(problem + "; the variable " + launcher + " says that this process is one of a job, which "
                        + "cannot be without: start the program with \"limosa run\", or name the library in "
                        + "JAVA_LIMOSA_LIBRARY; \"limosa run --threads\" and org.limosa.run.Run need none");
            }
            System.err.println("limosa: there is no MPI library (" + problem + "); this program runs as one rank, in "
                    + "Java; \"limosa run\" starts several");
            only = new LocalJob(1).engine(0);
        }
        return only;
    }

    private static MPIException fails(String text) {
        return MPIException.of(Abi.MPI_ERR_OTHER, "there is no MPI library: " + text);
    }

    /** A variable that says that a launcher has started this process beside others; null if none does. */
    private static String launcher() {
        if (System.getenv(BY_LIMOSA) != null) {
            return BY_LIMOSA;
        }
        for (String size : SIZES) {
            String count = System.getenv(size);
            if (count != null && !count.equals("1")) {
                return size;
            }
        }
        return System.getenv(BY_PMIX) != null && System.getenv("PMIX_SIZE") == null ? BY_PMIX : null;
    }
}
