package mpi;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.limosa.engine.Members;

/** An ordered set of processes. */
public class Group {
    final Members members;

    Group(Members members) {
        this.members = members;
    }

    public int Size() throws MPIException {
        return members.size();
    }

    /** The rank of the calling process, or UNDEFINED. */
    public int Rank() throws MPIException {
        return orUndefined(members.rank());
    }

    private static int orUndefined(int rank) {
        return rank == Members.NONE ? MPI.UNDEFINED : rank;
    }

    /** The ranks that processes of one group have in another; UNDEFINED for those that are not in it. */
    public static int[] Translate_ranks(Group group1, int[] ranks1, Group group2) throws MPIException {
        members("Translate_ranks", group1);
        members("Translate_ranks", group2);
        group1.check("Translate_ranks", ranks1);
        int[] found = group1.members.translate(ranks1, group2.members);
        return IntStream.of(found).map(Group::orUndefined).toArray();
    }

    /** IDENT, SIMILAR (other order) or UNEQUAL. */
    public static int Compare(Group group1, Group group2) throws MPIException {
        Members one = members("Compare", group1);
        Members other = members("Compare", group2);
        if (one.isIdentical(other)) {
            return MPI.IDENT;
        }
        return one.isSimilar(other) ? MPI.SIMILAR : MPI.UNEQUAL;
    }

    public static Group Union(Group group1, Group group2) throws MPIException {
        return new Group(members("Union", group1).union(members("Union", group2)));
    }

    public static Group Intersection(Group group1, Group group2) throws MPIException {
        return new Group(members("Intersection", group1).intersection(members("Intersection", group2)));
    }

    public static Group Difference(Group group1, Group group2) throws MPIException {
        return new Group(members("Difference", group1).difference(members("Difference", group2)));
    }

    /** The processes of these ranks, in this order. */
    public Group Incl(int[] ranks) throws MPIException {
        check("Incl", ranks);
        checkDistinct("Incl", ranks);
        return new Group(members.include(ranks));
    }

    /** All processes but those of these ranks. */
    public Group Excl(int[] ranks) throws MPIException {
        check("Excl", ranks);
        checkDistinct("Excl", ranks);
        int[] kept = IntStream.range(0, members.size())
                .filter(rank -> IntStream.of(ranks).noneMatch(other -> other == rank)).toArray();
        return new Group(members.include(kept));
    }

    /** As {@link #Incl}; every row is first, last, stride. */
    public Group Range_incl(int[][] ranges) throws MPIException {
        return Incl(expand("Range_incl", ranges));
    }

    /** As {@link #Excl}; every row is first, last, stride. */
    public Group Range_excl(int[][] ranges) throws MPIException {
        return Excl(expand("Range_excl", ranges));
    }

    private static Members members(String function, Group group) {
        return Errors.present("Group." + function, "a group", group).members;
    }

    private static int[] expand(String function, int[][] ranges) {
        return Arrays.stream(Errors.present("Group." + function, "ranges", ranges)).flatMapToInt(range -> {
            if (range == null || range.length != 3 || range[2] == 0) {
                throw Errors.argument("Group." + function + ": " + Arrays.toString(range)
                        + " is no range; it is {first, last, stride}, the stride not 0");
            }
            int count = Math.max(0, (range[1] - range[0]) / range[2] + 1);
            boolean empty = range[2] > 0 ? range[0] > range[1] : range[0] < range[1];
            return IntStream.range(0, empty ? 0 : count).map(i -> range[0] + i * range[2]);
        }).toArray();
    }

    private void check(String function, int[] ranks) {
        Errors.present("Group." + function, "ranks", ranks);
        for (int rank : ranks) {
            if (rank < 0 || rank >= members.size()) {
                throw Errors.rank("Group." + function + ": the group has no rank " + rank + "; it has "
                        + members.size() + " processes");
            }
        }
    }

    private static void checkDistinct(String function, int[] ranks) {
        if (IntStream.of(ranks).distinct().count() != ranks.length) {
            throw Errors.rank("Group." + function + ": a rank is given twice in " + Arrays.toString(ranks));
        }
    }

    public void Free() throws MPIException {
        members.free();
    }

    public void free() throws MPIException {
        Free();
    }

    // --- the names of Open MPI's bindings ---

    /** The number of processes. */
    public int getSize() throws MPIException {
        return Size();
    }

    /** The rank of the calling process, or UNDEFINED. */
    public int getRank() throws MPIException {
        return Rank();
    }

    /** Whether there is no group. */
    public boolean isNull() {
        return false;
    }

    /** The ranks that processes of one group have in another. */
    public static int[] translateRanks(Group group1, int[] ranks1, Group group2) throws MPIException {
        return Translate_ranks(group1, ranks1, group2);
    }

    /** IDENT, SIMILAR or UNEQUAL. */
    public static int compare(Group group1, Group group2) throws MPIException {
        return Compare(group1, group2);
    }

    /** The processes of both groups. */
    public static Group union(Group group1, Group group2) throws MPIException {
        return Union(group1, group2);
    }

    /** The processes that are in both groups. */
    public static Group intersection(Group group1, Group group2) throws MPIException {
        return Intersection(group1, group2);
    }

    /** The processes of the first group that are not in the second. */
    public static Group difference(Group group1, Group group2) throws MPIException {
        return Difference(group1, group2);
    }

    /** The processes of these ranks. */
    public Group incl(int[] ranks) throws MPIException {
        return Incl(ranks);
    }

    /** All processes but those of these ranks. */
    public Group excl(int[] ranks) throws MPIException {
        return Excl(ranks);
    }

    /** As {@link #incl}; every row is first, last, stride. */
    public Group rangeIncl(int[][] ranges) throws MPIException {
        return Range_incl(ranges);
    }

    /** As {@link #excl}; every row is first, last, stride. */
    public Group rangeExcl(int[][] ranges) throws MPIException {
        return Range_excl(ranges);
    }
}
