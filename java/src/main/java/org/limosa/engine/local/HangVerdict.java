package org.limosa.engine.local;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.limosa.engine.local.Awaited.Kind;
import org.limosa.engine.local.RankView.CallView;
import org.limosa.engine.local.RankView.Lying;

/**
 * Why a job hangs: ranks that have left, that are missing from a call, or wait for each other in a circle, and messages
 * that no rank awaits. The sentences are those of the launcher's reports on ranks that are processes.
 */
final class HangVerdict {
    private final List<RankView> ranks;
    final Set<String> findings = new LinkedHashSet<>();
    final Set<HangHint> hints = EnumSet.noneOf(HangHint.class);

    /** Something that a rank waits for. */
    private record Need(int rank, CallView call, Awaited awaited) {
        boolean is(Kind kind) {
            return awaited.kind() == kind;
        }

        boolean isSame(Need other) {
            return call.name().equals(other.call.name()) && awaited.context() == other.awaited.context();
        }
    }

    /** All ranks of the job, by number. */
    HangVerdict(List<RankView> ranks) {
        this.ranks = ranks;
        whoHasLeft();
        whoIsMissing();
        unreceived();
        circles();
        differingSends();
        fromAnyRank();
    }

    private Stream<Need> needs() {
        return ranks.stream().flatMap(this::needsOf);
    }

    private Stream<Need> needsOf(RankView view) {
        return view.calls().stream().flatMap(
                call -> call.awaited().stream().map(awaited -> new Need(view.rank(), call, awaited)));
    }

    private void whoHasLeft() {
        Map<Integer, Set<Integer>> missed = new TreeMap<>();
        needs().forEach(need -> need.awaited.needed().stream().filter(rank -> !ranks.get(rank).isRunning())
                .forEach(rank -> missed.computeIfAbsent(rank, key -> new TreeSet<>()).add(need.rank)));
        missed.forEach((gone, waiting) -> {
            List<Integer> who = List.copyOf(new TreeSet<>(waiting).stream().toList());
            findings.add("rank " + gone + " " + ranks.get(gone).howItLeft() + " while " + Words.ranks(who)
                    + Words.verb(who, " waits", " wait") + " for it");
            hints.add(HangHint.BEFORE_THE_END);
        });
    }

    /** Ranks that are waited for in a collective call but wait somewhere else. */
    private void whoIsMissing() {
        List<Need> seen = new ArrayList<>();
        needs().filter(need -> need.is(Kind.COLLECTIVE)).forEach(need -> {
            if (seen.stream().noneMatch(need::isSame)) {
                seen.add(need);
                whoIsMissing(need);
            }
        });
    }

    private void whoIsMissing(Need one) {
        Set<Integer> absent = new TreeSet<>();
        needs().filter(one::isSame).forEach(need -> absent.addAll(need.awaited.needed()));
        absent.removeIf(rank -> !ranks.get(rank).isRunning() || isIn(one, ranks.get(rank)));
        Map<String, List<Integer>> places = new TreeMap<>();
        absent.forEach(rank -> {
            List<CallView> calls = ranks.get(rank).calls();
            String place = calls.isEmpty() ? "no call of the library" : HangReport.describe(calls.get(0));
            places.computeIfAbsent(place, key -> new ArrayList<>()).add(rank);
        });
        places.forEach((place, who) -> findings.add(
                Words.ranks(who) + Words.verb(who, " is", " are") + " not in " + one.call.name()
                        + HangReport.on(one.call.name(), one.awaited.communicator())
                        + Words.verb(who, "; it waits in ", "; they wait in ") + place));
        if (!places.isEmpty()) {
            hints.add(HangHint.SAME_ORDER);
        }
    }

    private boolean isIn(Need one, RankView other) {
        return needsOf(other).anyMatch(need -> need.is(Kind.COLLECTIVE) && one.isSame(need));
    }

    /** Messages that have arrived where a different message is awaited. */
    private void unreceived() {
        for (RankView view : ranks) {
            List<Awaited> receives =
                    needsOf(view).filter(need -> need.is(Kind.RECEIVE)).map(Need::awaited).toList();
            if (!receives.isEmpty()) {
                view.lying().forEach(lying -> findings.add(compare(view.rank(), lying, receives)));
            }
        }
    }

    /** In what a message differs from the ones that are awaited. */
    private String compare(int rank, Lying lying, List<Awaited> receives) {
        String of = lying.sender() == lying.source() ? ""
                : " (world rank " + lying.sender() + ") of " + lying.communicator();
        String what = "tag " + lying.tag() + " from rank " + lying.source() + of + " lies unreceived at rank " + rank;
        Predicate<Awaited> isHere = each -> each.context() == lying.context();
        Predicate<Awaited> isFromPeer = each -> each.peer() == Awaited.ANY || each.needed().contains(lying.sender());
        Predicate<Awaited> hasTag = each -> each.tag() == Awaited.ANY || each.tag() == lying.tag();
        Optional<Awaited> found = receives.stream().filter(isHere.and(isFromPeer)).findFirst();
        if (found.isPresent()) {
            hints.add(HangHint.TAG);
            int tag = found.get().tag();
            return what + " while " + (tag == Awaited.ANY ? "another message" : "tag " + tag) + " is awaited";
        }
        found = receives.stream().filter(isHere.negate().and(isFromPeer).and(hasTag)).findFirst();
        if (found.isPresent()) {
            hints.add(HangHint.COMMUNICATOR);
            return what + " on " + lying.communicator() + ", while a message on " + found.get().communicator()
                    + " is awaited";
        }
        found = receives.stream().filter(isHere.and(hasTag)).findFirst();
        if (found.isPresent()) {
            hints.add(HangHint.SOURCE);
            return what + " while it is awaited from rank " + found.get().peer();
        }
        return what + " on " + lying.communicator();
    }

    /** Circles of ranks that wait for each other. */
    private void circles() {
        Map<Integer, Set<Integer>> edges = new TreeMap<>();
        needs().forEach(need -> need.awaited.needed().stream()
                .filter(rank -> ranks.get(rank).isRunning() && !doesItsPart(need, ranks.get(rank)))
                .forEach(rank -> edges.computeIfAbsent(need.rank, key -> new TreeSet<>()).add(rank)));
        Set<Integer> named = new HashSet<>();
        for (int start : edges.keySet()) {
            List<Integer> circle = named.contains(start) ? List.of() : circle(edges, start);
            named.addAll(circle);
            if (circle.size() == 1) {
                findings.add("rank " + start + " waits for itself");
                hints.add(HangHint.TO_ITSELF);
            } else if (!circle.isEmpty()) {
                List<String> names = new ArrayList<>(circle.stream().map(String::valueOf).toList());
                names.add(names.get(0));
                findings.add(Words.ranks(circle.stream().sorted().toList()) + " wait for each other in a circle: "
                        + String.join(" -> ", names));
                hintAt(circle);
            }
        }
    }

    private void hintAt(List<Integer> circle) {
        List<Need> inside = needs().filter(need -> circle.contains(need.rank)).toList();
        if (inside.stream().allMatch(need -> need.is(Kind.RECEIVE))) {
            hints.add(HangHint.RECEIVE_FIRST);
        }
        if (inside.stream().allMatch(need -> need.is(Kind.SEND))) {
            hints.add(HangHint.SEND_FIRST);
        }
    }

    /** Whether another rank does what a wait needs: it is in the same call, or sends or receives the message. */
    private boolean doesItsPart(Need need, RankView other) {
        if (need.is(Kind.COLLECTIVE)) {
            return isIn(need, other);
        }
        Kind counterpart = need.is(Kind.SEND) ? Kind.RECEIVE : Kind.SEND;
        return needsOf(other).anyMatch(theirs -> theirs.is(counterpart)
                && theirs.awaited.context() == need.awaited.context()
                && (theirs.awaited.peer() == Awaited.ANY || theirs.awaited.needed().contains(need.rank))
                && (theirs.awaited.tag() == Awaited.ANY || need.awaited.tag() == Awaited.ANY
                        || theirs.awaited.tag() == need.awaited.tag()));
    }

    /** The shortest way from a rank back to itself, found by breadth; none if there is none. */
    private static List<Integer> circle(Map<Integer, Set<Integer>> edges, int start) {
        Map<Integer, Integer> from = new HashMap<>();
        Deque<Integer> next = new ArrayDeque<>(List.of(start));
        while (!next.isEmpty()) {
            int rank = next.remove();
            for (int target : edges.getOrDefault(rank, Set.of())) {
                if (target == start) {
                    List<Integer> way = new ArrayList<>();
                    for (Integer at = rank; at != null && at != start; at = from.get(at)) {
                        way.add(at);
                    }
                    way.add(start);
                    Collections.reverse(way);
                    return way;
                }
                if (from.putIfAbsent(target, rank) == null) {
                    next.add(target);
                }
            }
        }
        return List.of();
    }

    /** A sender and a receiver that name each other but use different tags or communicators. */
    private void differingSends() {
        needs().filter(need -> need.is(Kind.SEND)).forEach(send -> send.awaited.needed().forEach(receiver ->
                needsOf(ranks.get(receiver))
                        .filter(need -> need.is(Kind.RECEIVE) && need.awaited.needed().contains(send.rank))
                        .forEach(receive -> compare(send, receive))));
    }

    private void compare(Need send, Need receive) {
        String names = "rank " + send.rank + " sends ";
        if (send.awaited.context() != receive.awaited.context()) {
            findings.add(names + "to rank " + receive.rank + " on " + send.awaited.communicator()
                    + ", but that one receives on " + receive.awaited.communicator());
            hints.add(HangHint.COMMUNICATOR);
        } else if (receive.awaited.tag() != Awaited.ANY && receive.awaited.tag() != send.awaited.tag()) {
            findings.add(names + "tag " + send.awaited.tag() + " to rank " + receive.rank
                    + ", but that one waits for tag " + receive.awaited.tag() + " from it");
            hints.add(HangHint.TAG);
        }
    }

    private void fromAnyRank() {
        List<Integer> open = needs().filter(need -> need.is(Kind.RECEIVE) && need.awaited.peer() == Awaited.ANY)
                .map(Need::rank).distinct().toList();
        if (!open.isEmpty()) {
            findings.add(Words.ranks(open) + Words.verb(open, " waits", " wait")
                    + " for a message from any rank, but no rank is left that could send one");
        }
    }
}
