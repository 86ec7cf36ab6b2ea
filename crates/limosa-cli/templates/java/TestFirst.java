import org.limosa.World;

/** The test of First.java: `limosa run -n 3 TestFirst.java`. An exception on any rank ends the job with an error. */
class TestFirst {
    public static void main(String[] args) {
        World.run(args, world -> {
            double area = First.circleArea(world, 10_000);
            if (Math.abs(area - Math.PI) > 1e-5) {
                throw new AssertionError("rank " + world.rank() + " got " + area);
            }
            // Prints the line on rank 0 after all ranks have passed.
            world.barrier();
            if (world.rank() == 0) {
                System.out.println("passed on " + world.size() + " ranks");
            }
        });
    }
}
