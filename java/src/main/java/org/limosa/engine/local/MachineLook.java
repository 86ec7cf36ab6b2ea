package org.limosa.engine.local;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.limosa.engine.local.RankView.CallView;

/**
 * What the ranks of a machine do, of which none can go on by itself; or those of all machines.
 *
 * @param ranks the ranks
 * @param strangers threads of no rank that sleep and may go on
 * @param changes a number for each machine, which grows with each sleep that begins or ends
 * @param sent how many messages it has sent to others
 * @param received how many messages of others it has received
 */
record MachineLook(List<RankView> ranks, int strangers, List<Long> changes, long sent, long received)
        implements Serializable {
    private static final ObjectInputFilter OWN =
            ObjectInputFilter.Config.createFilter("org.limosa.engine.local.*;java.lang.*;java.util.*;!*");

    /** The looks at all machines in one; null if a message is under way between them. */
    static MachineLook together(List<MachineLook> looks) {
        List<RankView> ranks = new ArrayList<>();
        List<Long> changes = new ArrayList<>();
        looks.forEach(each -> ranks.addAll(each.ranks));
        looks.forEach(each -> changes.addAll(each.changes));
        long sent = looks.stream().mapToLong(MachineLook::sent).sum();
        long received = looks.stream().mapToLong(MachineLook::received).sum();
        int strangers = looks.stream().mapToInt(MachineLook::strangers).sum();
        return sent == received ? new MachineLook(ranks, strangers, changes, sent, received) : null;
    }

    /**
     * Whether nothing has happened between two looks. Those of several machines are not taken at the same time: only if
     * as many messages were received as were sent, in both, was none under way in between.
     */
    boolean isSame(MachineLook other) {
        return changes.equals(other.changes) && sent == other.sent && received == other.received;
    }

    /** Whether a rank has no thread in a call, or a thread sleeps that may yet call: then it may be no hang. */
    boolean isDoubtful() {
        return strangers > 0 || ranks.stream().anyMatch(
                view -> view.strangers() > 0 || view.isRunning() && view.calls().isEmpty());
    }

    /** Whether a thread sleeps in a call. */
    boolean isInCall() {
        return ranks.stream().anyMatch(view -> !view.calls().isEmpty());
    }

    /** For how long the last thread has waited. */
    long leastNanos() {
        return ranks.stream().flatMap(view -> view.calls().stream()).mapToLong(CallView::nanos).min().orElse(0);
    }

    /** Its bytes, for another machine; none for null. */
    static byte[] write(MachineLook look) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        if (look != null) {
            try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                out.writeObject(look);
            }
        }
        return bytes.toByteArray();
    }

    static MachineLook read(byte[] bytes) throws IOException {
        if (bytes.length == 0) {
            return null;
        }
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
            in.setObjectInputFilter(OWN);
            return (MachineLook) in.readObject();
        } catch (ClassNotFoundException e) {
            throw new IOException(e);
        }
    }
}
