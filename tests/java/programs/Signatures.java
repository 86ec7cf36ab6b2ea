import java.lang.reflect.Constructor;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Asks the classes of package mpi whether they have what a file lists: in each line a class and a declaration, with a
 * tabulator between them. Prints what is missing, and how many it has found.
 */
public class Signatures {
    static final Map<String, Class<?>> KNOWN = Map.of(
            "void", void.class, "int", int.class, "boolean", boolean.class, "double", double.class, "byte", byte.class,
            "String", String.class, "Object", Object.class, "RuntimeException", RuntimeException.class,
            "Throwable", Throwable.class, "ByteBuffer", java.nio.ByteBuffer.class);
    static final Map<Class<?>, Class<?>> BOXES = Map.of(int.class, Integer.class, boolean.class, Boolean.class);

    static Class<?> type(String name) throws ClassNotFoundException {
        if (name.endsWith("[]")) {
            return type(name.substring(0, name.length() - 2)).arrayType();
        }
        return KNOWN.containsKey(name) ? KNOWN.get(name) : Class.forName("mpi." + name);
    }

    /** Whether a program can use a result of one type as one of another. */
    static boolean gives(Class<?> found, Class<?> wanted) {
        return wanted == void.class || wanted.isAssignableFrom(found) || BOXES.get(wanted) == found;
    }

    static boolean takes(Class<?>[] found, Class<?>[] given) {
        boolean fits = found.length == given.length;
        for (int i = 0; i < given.length && fits; i++) {
            fits = found[i].isAssignableFrom(given[i]);
        }
        return fits;
    }

    static boolean has(Class<?> owner, String declaration) throws ClassNotFoundException {
        if (declaration.startsWith("extends ")) {
            return type(declaration.substring(8)).isAssignableFrom(owner);
        }
        int open = declaration.indexOf('(');
        String head = open < 0 ? declaration : declaration.substring(0, open);
        List<String> words = Arrays.asList(head.split(" "));
        String name = words.getLast();
        if (open < 0) {
            return hasField(owner, words, name);
        }
        String inside = declaration.substring(open + 1, declaration.length() - 1);
        String[] names = inside.isEmpty() ? new String[0] : inside.split(", ");
        Class<?>[] given = new Class<?>[names.length];
        for (int i = 0; i < given.length; i++) {
            given[i] = type(names[i]);
        }
        if (words.size() == 1) {
            return Arrays.stream(owner.getConstructors()).map(Constructor::getParameterTypes)
                    .anyMatch(parameters -> takes(parameters, given));
        }
        Class<?> result = type(words.get(words.size() - 2));
        return Arrays.stream(owner.getMethods()).anyMatch(
                method -> method.getName().equals(name) && isAs(method.getModifiers(), words)
                        && gives(method.getReturnType(), result) && takes(method.getParameterTypes(), given));
    }

    static boolean hasField(Class<?> owner, List<String> words, String name) throws ClassNotFoundException {
        Class<?> wanted = type(words.get(words.size() - 2));
        return Arrays.stream(owner.getFields()).anyMatch(
                field -> field.getName().equals(name) && isAs(field.getModifiers(), words)
                        && gives(field.getType(), wanted));
    }

    static boolean isAs(int modifiers, List<String> words) {
        return Modifier.isStatic(modifiers) == words.contains("static")
                && Modifier.isAbstract(modifiers) == words.contains("abstract")
                && (Modifier.isFinal(modifiers) || !words.contains("final"));
    }

    public static void main(String[] args) throws Exception {
        int found = 0;
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] parts = line.split("\t");
            Class<?> owner = type(parts[0]);
            if (Modifier.isPublic(owner.getModifiers()) && has(owner, parts[1])) {
                found++;
            } else {
                System.out.println("class mpi." + parts[0] + " has no public member " + parts[1]);
            }
        }
        System.out.println(found);
    }
}
