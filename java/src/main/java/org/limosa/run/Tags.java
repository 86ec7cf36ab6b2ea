package org.limosa.run;

import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;

/**
 * Begins each line of output with the rank whose thread has written it: {@code limosa run -l} with ranks that are
 * threads. A line is written when it is complete, or when its rank flushes the stream.
 */
final class Tags extends OutputStream {
    /** The variable by which the launcher asks for it. */
    static final String WANTED = "LIMOSA_TAG_OUTPUT";
    private static final String NO_RANK = "";

    private final OutputStream out;
    /** The tag of the calling thread; null if it belongs to no rank. */
    private final Supplier<String> tag;
    /** Lines that are not complete, by their tags. */
    private final Map<String, ByteArrayOutputStream> lines = new TreeMap<>();
    /** The tag of the line that was flushed before it was complete; null if there is none. */
    private String open;

    private Tags(FileDescriptor file, Supplier<String> tag) {
        out = new FileOutputStream(file);
        this.tag = tag;
    }

    /** Tags what is written to the standard streams from now on. */
    static void install(Supplier<String> tag) {
        Tags output = new Tags(FileDescriptor.out, tag);
        Tags errors = new Tags(FileDescriptor.err, tag);
        System.setOut(new PrintStream(output, false, System.out.charset()));
        System.setErr(new PrintStream(errors, false, System.err.charset()));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            output.end();
            errors.end();
        }, "limosa-output"));
    }

    private String own() {
        String found = tag.get();
        return found == null ? NO_RANK : found;
    }

    @Override
    public void write(int single) throws IOException {
        write(new byte[] {(byte) single}, 0, 1);
    }

    @Override
    public synchronized void write(byte[] bytes, int offset, int length) throws IOException {
        String own = own();
        ByteArrayOutputStream line = lines.computeIfAbsent(own, key -> new ByteArrayOutputStream());
        int begin = offset;
        for (int i = offset; i < offset + length; i++) {
            if (bytes[i] == '\n') {
                line.write(bytes, begin, i + 1 - begin);
                show(own, line);
                open = null;
                begin = i + 1;
            }
        }
        line.write(bytes, begin, offset + length - begin);
    }

    @Override
    public synchronized void flush() throws IOException {
        flush(own());
    }

    private void flush(String own) throws IOException {
        ByteArrayOutputStream line = lines.get(own);
        if (line != null && line.size() > 0) {
            show(own, line);
            open = own;
        }
    }

    private void show(String own, ByteArrayOutputStream line) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        if (open != null && !open.equals(own)) {
            all.write('\n');
        }
        if (!own.equals(open)) {
            all.writeBytes(own.getBytes());
        }
        line.writeTo(all);
        line.reset();
        all.writeTo(out);
    }

    /** Completes and writes unfinished lines, each in one piece: other machines write to the same stream. */
    private synchronized void end() {
        try {
            for (Map.Entry<String, ByteArrayOutputStream> each : lines.entrySet()) {
                if (each.getValue().size() > 0 || each.getKey().equals(open)) {
                    each.getValue().write('\n');
                    show(each.getKey(), each.getValue());
                    open = null;
                }
            }
        } catch (IOException e) {
            // The reader of the output has gone.
        }
    }
}
