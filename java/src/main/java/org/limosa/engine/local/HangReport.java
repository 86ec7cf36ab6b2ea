package org.limosa.engine.local;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.limosa.engine.local.Awaited.Kind;
import org.limosa.engine.local.RankView.CallView;

/** The report of a hang in words: what each rank waits for and where, why, and what to do. */
final class HangReport {
    private static final int MOST_LINES = 64;
    private static final double NANOS = 1e9;

    private HangReport() {}

    /** {@code strangers}: threads of no rank that may go on. {@code quiet}: for how long nothing has changed. */
    static String of(List<RankView> ranks, int strangers, boolean isDoubtful, double quiet) {
        StringBuilder text = new StringBuilder(head(ranks, isDoubtful, quiet));
        lines(ranks).forEach(line -> text.append("  ").append(line).append('\n'));
        HangVerdict verdict = new HangVerdict(ranks);
        doubts(ranks, strangers).forEach(doubt -> text.append("limosa: ").append(doubt).append('\n'));
        verdict.findings.forEach(finding -> text.append("limosa: ").append(finding).append('\n'));
        HangHint.Language words = ranks.stream().flatMap(view -> view.calls().stream()).findFirst().orElseThrow()
                .language();
        verdict.hints.forEach(hint -> text.append("hint: ").append(hint.text(words)).append('\n'));
        return text.toString();
    }

    private static String head(List<RankView> ranks, boolean isDoubtful, double quiet) {
        List<Integer> waiting = ranks.stream().filter(RankView::isRunning).map(RankView::rank).toList();
        int left = ranks.size() - waiting.size();
        String others = left == 0 ? "" : left == 1 ? " (the other one has left)"
                : " (the other " + left + " have left)";
        String who = Words.ranks(waiting) + others + Words.verb(waiting, " waits", " wait");
        return isDoubtful
                ? "limosa: this job may hang: " + who + " and nothing has happened for " + Words.duration(quiet) + "\n"
                : "limosa: this job hangs: " + who + " and nothing is under way\n";
    }

    // --- what each rank does ---

    /** What a rank does, and where; ranks with the same share a line. */
    private record Situation(String what, String line) {}

    private static List<String> lines(List<RankView> ranks) {
        Map<Situation, List<Integer>> who = new LinkedHashMap<>();
        Map<Situation, Long> since = new LinkedHashMap<>();
        for (RankView view : ranks) {
            for (CallView call : view.calls()) {
                Situation situation = new Situation(describe(call), call.line());
                add(who, situation, view.rank());
                since.merge(situation, call.nanos(), Math::max);
            }
            String what = view.calls().isEmpty() ? "a thread that waits" : "another thread, which waits";
            for (String line : view.stuck()) {
                add(who, new Situation(what + " for a lock or for the end of a thread", line), view.rank());
            }
            if (view.isRunning() && view.calls().isEmpty() && view.stuck().isEmpty()) {
                add(who, new Situation("no thread is in a call, and none has anything to do", null), view.rank());
            }
            if (!view.isRunning()) {
                add(who, new Situation(view.howItLeft(), null), view.rank());
            }
        }
        List<String> lines = new ArrayList<>();
        who.forEach((situation, members) -> {
            Long nanos = since.get(situation);
            String time = nanos == null ? "" : ", for " + Words.duration(nanos / NANOS);
            String place = situation.line == null ? "" : "\n      at " + situation.line;
            lines.add(Words.ranks(members) + ": " + situation.what + time + place);
        });
        if (lines.size() > MOST_LINES) {
            List<String> shown = new ArrayList<>(lines.subList(0, MOST_LINES));
            shown.add("and " + (lines.size() - MOST_LINES) + " more");
            return shown;
        }
        return lines;
    }

    private static void add(Map<Situation, List<Integer>> who, Situation situation, int rank) {
        List<Integer> ranks = who.computeIfAbsent(situation, key -> new ArrayList<>());
        if (!ranks.contains(rank)) {
            ranks.add(rank);
        }
    }

    /** A call in words: {@code Comm.Recv from rank 1, tag 5, on MPI.COMM_WORLD}. */
    static String describe(CallView call) {
        List<String> parts = new ArrayList<>();
        List<Awaited> all = call.awaited();
        for (int i = 0; i < all.size(); i++) {
            // A communicator that all have in common is named once, at the end.
            boolean isNamed = i == all.size() - 1
                    || !all.get(i).communicator().equals(all.get(i + 1).communicator());
            parts.add(describe(call.name(), all.get(i), isNamed));
        }
        String what = String.join(" or ", parts);
        return call.name() + (what.startsWith("which ") ? ", " : " ") + what;
    }

    private static String describe(String call, Awaited awaited, boolean isNamed) {
        String on = isNamed ? on(call, awaited.communicator()) : "";
        if (awaited.kind() == Kind.COLLECTIVE) {
            boolean isAll = awaited.needed().size() > 1 && awaited.needed().size() == awaited.members() - 1;
            String needs = "which needs " + (isAll ? "all other ranks" : Words.ranks(awaited.needed()));
            return on.isEmpty() ? needs : on.strip() + ", " + needs;
        }
        String peer = awaited.peer() == Awaited.ANY ? "any rank" : "rank " + awaited.peer()
                + (awaited.needed().contains(awaited.peer()) ? "" : " (world rank " + awaited.needed().get(0) + ")");
        String tag = awaited.tag() == Awaited.ANY ? ", any tag" : ", tag " + awaited.tag();
        return (awaited.kind() == Kind.SEND ? "to " : "from ") + peer + tag + (on.isEmpty() ? "" : "," + on);
    }

    /** {@code on MPI.COMM_WORLD}, unless the name of the call says it. */
    static String on(String call, String communicator) {
        return call.startsWith(communicator + ".") ? "" : " on " + communicator;
    }

    // --- why it may be no hang ---

    private static List<String> doubts(List<RankView> ranks, int strangers) {
        List<String> doubts = new ArrayList<>();
        List<Integer> locked = ranks.stream().filter(view -> view.isRunning() && view.calls().isEmpty())
                .map(RankView::rank).toList();
        if (!locked.isEmpty()) {
            doubts.add(Words.ranks(locked) + Words.verb(locked, " is", " are") + " not in the library, and "
                    + Words.verb(locked, "all its", "all") + " threads wait for locks or for each other");
        }
        for (RankView view : ranks) {
            if (view.strangers() > 0) {
                doubts.add("rank " + view.rank() + " has " + sleepers(view.strangers()));
            }
        }
        if (strangers > 0) {
            doubts.add("there " + (strangers == 1 ? "is " : "are ") + sleepers(strangers));
        }
        return doubts;
    }

    private static String sleepers(int count) {
        return (count == 1 ? "another thread, which sleeps" : count + " other threads, which sleep")
                + " and never called the library: this is a deadlock if " + (count == 1 ? "it does" : "they do")
                + " not call it";
    }
}
