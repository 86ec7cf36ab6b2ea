package mpjdev;

/**
 * Nothing: programs for MPJ Express import its package {@code mpjdev} without using it, and Java compiles this only if
 * the package has a class.
 */
public final class MPJDev {
    private MPJDev() {}
}
