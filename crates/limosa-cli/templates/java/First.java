import java.util.Locale;
import org.limosa.Comm;
import org.limosa.Operation;
import org.limosa.World;

/**
 * A first program with Limosa: the ranks compute the area of the unit circle together.
 *
 * <pre>limosa run -n 4 First.java</pre>
 *
 * Limosa starts this file 4 times. The 4 processes are the ranks of the job. They share no variables: what one rank
 * computes reaches the other ranks by messages. The guide is docs/java.md of Limosa.
 */
class First {
    /** Returns the area of the unit circle on every rank, from strips of width 1/steps under the quarter circle. */
    static double circleArea(Comm world, int steps) {
        // The ranks deal out the strips: with 4 ranks, rank 1 computes the strips 1, 5, 9, ...
        double ownPart = 0;
        for (int strip = world.rank(); strip < steps; strip += world.size()) {
            double x = (strip + 0.5) / steps;
            ownPart += 4.0 / steps * Math.sqrt(1 - x * x);
        }
        // Adds up the parts of all ranks; each rank gets the sum. All ranks must make this call, otherwise it waits.
        return world.allreduce(ownPart, Operation.SUM);
    }

    public static void main(String[] args) {
        World.run(args, world -> {
            double area = circleArea(world, 100_000);
            // All ranks have come here. If each printed the result, it would appear once for each rank.
            if (world.rank() == 0) {
                System.out.println(String.format(
                        Locale.ROOT, "the area of the unit circle, by %d ranks, is %.5f", world.size(), area));
            }
        });
    }
}
