package org.limosa.run;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.limosa.engine.Lease;
import org.limosa.engine.local.Rendezvous;

/**
 * Starts a job without any native part of Limosa: its ranks are threads of one or several Java machines, and Java
 * carries the messages. The options are those of {@link #USAGE}.
 */
public final class Run {
    private static final String USAGE = """
            usage: java [OPTIONS OF JAVA] -cp limosa.jar:CLASSES org.limosa.run.Run [OPTIONS] MAIN-CLASS [ARGUMENTS]...
              -n N               number of ranks in all (1)
              --per-jvm N        ranks in each Java machine, which are its threads (1)
              --quiet            do not say what carries the messages
            several hosts; JAVA_LIMOSA_KEY holds the same 32 or more hexadecimal digits on all of them:
              --address A[:PORT] where this host can be reached (127.0.0.1)
              --here N           how many ranks this host starts, from rank 0 on
              --join A:PORT      start ranks of the job that another host has started with --here
              --first N          with --join: the first rank of this host""";
    private static final int WRONG_USE = 2;
    private static final int LEAST_KEY = 32;
    private static final int SIGNALS = 128;
    /** How long a machine has to end when it is asked to, in seconds. */
    private static final long PATIENCE = 2;

    private int ranks = 1;
    private int perMachine = 1;
    private int here = -1;
    private int first;
    private boolean isQuiet;
    private String address = "127.0.0.1";
    private int port;
    private String place;
    private String[] program;

    private final List<Process> machines = new ArrayList<>();
    private final BlockingQueue<Process> ended = new LinkedBlockingQueue<>();

    private Run() {}

    public static void main(String[] args) throws InterruptedException {
        Run run = new Run();
        String problem = run.read(args);
        if (problem != null) {
            System.err.println("limosa: " + problem + "\n" + USAGE);
            System.exit(WRONG_USE);
        }
        int code;
        try {
            code = run.all();
        } catch (IOException e) {
            System.err.println("limosa: the job cannot be started: " + e.getMessage());
            code = 1;
        }
        System.exit(code);
    }

    // --- the command line ---

    /** What is wrong with it; null if nothing is. */
    private String read(String[] args) {
        int at = 0;
        try {
            while (at < args.length && args[at].startsWith("-")) {
                String option = args[at++];
                if (!option.equals("--quiet") && at == args.length) {
                    return option + " needs a value, or is no option";
                }
                switch (option) {
                    case "-n" -> ranks = number(args[at++]);
                    case "--per-jvm" -> perMachine = number(args[at++]);
                    case "--here" -> here = number(args[at++]);
                    case "--first" -> first = Integer.parseUnsignedInt(args[at++]);
                    case "--join" -> place = args[at++];
                    case "--quiet" -> isQuiet = true;
                    case "--address" -> setAddress(args[at++]);
                    default -> {
                        return "there is no option " + option;
                    }
                }
            }
        } catch (NumberFormatException e) {
            return args[at - 2] + " needs a whole number above 0, not " + args[at - 1];
        }
        program = Arrays.copyOfRange(args, at, args.length);
        here = here < 0 ? ranks : here;
        if (here > ranks) {
            return "--here is more than -n";
        }
        return program.length == 0 ? "there is no class to run" : keyProblem();
    }

    private static int number(String text) {
        int value = Integer.parseInt(text);
        if (value < 1) {
            throw new NumberFormatException();
        }
        return value;
    }

    private void setAddress(String text) {
        int colon = text.lastIndexOf(':');
        boolean hasPort = colon >= 0 && text.indexOf(':') == colon;
        address = hasPort ? text.substring(0, colon) : text;
        port = hasPort ? number(text.substring(colon + 1)) : 0;
    }

    private String keyProblem() {
        String given = System.getenv(Rendezvous.KEY);
        if (given == null) {
            return place == null && here == ranks ? null : Rendezvous.KEY + " must be set for several hosts";
        }
        boolean isKey = given.length() >= LEAST_KEY && given.matches("([0-9a-fA-F]{2})+");
        return isKey ? null : Rendezvous.KEY + " must be " + LEAST_KEY + " or more hexadecimal digits, in pairs";
    }

    // --- the job ---

    private static byte[] key() {
        String given = System.getenv(Rendezvous.KEY);
        if (given != null) {
            return HexFormat.of().parseHex(given);
        }
        byte[] made = new byte[LEAST_KEY];
        new SecureRandom().nextBytes(made);
        return made;
    }

    private int all() throws IOException, InterruptedException {
        Runtime.getRuntime().addShutdownHook(new Thread(this::endAll));
        byte[] key = key();
        if (place != null) {
            return startAndWait(place, key);
        }
        try (Rendezvous rendezvous = new Rendezvous(address, port, key, ranks)) {
            if (!isQuiet) {
                int count = (ranks + perMachine - 1) / perMachine;
                System.err.println("limosa: Java carries the messages of " + ranks + " ranks in " + count
                        + (count == 1 ? " process" : " processes") + "; no MPI library is used");
            }
            return startAndWait(address + ":" + rendezvous.port(), key);
        }
    }

    private int startAndWait(String meeting, byte[] key) throws IOException, InterruptedException {
        for (int rank = first; rank < first + here; rank += perMachine) {
            start(rank, Math.min(perMachine, first + here - rank), meeting, key);
        }
        int code = 0;
        for (int left = machines.size(); left > 0; left--) {
            Process process = ended.take();
            int own = process.exitValue();
            if (code == 0 && own != 0) {
                code = own;
                if (own > SIGNALS) {
                    System.err.println("limosa: " + names(machines.indexOf(process)) + " was ended by signal "
                            + (own - SIGNALS));
                }
                endAll();
            }
        }
        return code;
    }

    private String names(int machine) {
        int from = first + machine * perMachine;
        int to = Math.min(from + perMachine, first + here) - 1;
        return from == to ? "rank " + from : "the process of ranks " + from + "-" + to;
    }

    private void start(int rank, int count, String meeting, byte[] key) throws IOException {
        List<String> line = new ArrayList<>();
        line.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        line.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        line.add(Lease.EXPORT);
        line.addAll(List.of("-cp", System.getProperty("java.class.path"), Threads.class.getName()));
        line.add(Integer.toString(count));
        line.addAll(List.of(program));
        ProcessBuilder builder = new ProcessBuilder(line).inheritIO();
        if (rank > 0) {
            builder.redirectInput(ProcessBuilder.Redirect.from(Path.of("/dev/null").toFile()));
        }
        Map<String, String> environment = builder.environment();
        environment.put(Rendezvous.PLACE, meeting);
        environment.put(Rendezvous.KEY, HexFormat.of().formatHex(key));
        environment.put(Rendezvous.FIRST, Integer.toString(rank));
        environment.put(Rendezvous.ADDRESS, address);
        synchronized (machines) {
            Process process = builder.start();
            machines.add(process);
            process.onExit().thenAccept(ended::add);
        }
    }

    /** Ends all machines, also when this process is asked to end. */
    private void endAll() {
        synchronized (machines) {
            machines.forEach(Process::destroy);
            for (Process each : machines) {
                try {
                    if (!each.waitFor(PATIENCE, TimeUnit.SECONDS)) {
                        each.destroyForcibly();
                    }
                } catch (InterruptedException e) {
                    each.destroyForcibly();
                }
            }
        }
    }
}
