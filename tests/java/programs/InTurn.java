import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** Runs programs in turn in one job. Each of them starts message passing, prints "ok", and ends message passing. */
public class InTurn {
    public static void main(String[] names) throws Throwable {
        MethodType main = MethodType.methodType(void.class, String[].class);
        for (String name : names) {
            MethodHandles.publicLookup().findStatic(Class.forName(name), "main", main).invokeExact(new String[0]);
        }
    }
}
