package org.limosa.engine;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectStreamClass;
import java.lang.reflect.Proxy;

/**
 * Reads objects of a message. Classes are looked up with the context class loader of the calling thread. The property
 * {@code limosa.object.filter} holds a filter of {@link ObjectInputFilter.Config#createFilter} for what may be
 * received.
 */
public final class ObjectStream extends ObjectInputStream {
    private static final ObjectInputFilter FILTER = filter();

    public ObjectStream(byte[] message) throws IOException {
        super(new ByteArrayInputStream(message));
        if (FILTER != null) {
            setObjectInputFilter(FILTER);
        }
    }

    /** Whether only some classes may be received. */
    static boolean isFiltered() {
        return FILTER != null;
    }

    private static ObjectInputFilter filter() {
        String pattern = System.getProperty("limosa.object.filter");
        return pattern == null ? null : ObjectInputFilter.Config.createFilter(pattern);
    }

    @Override
    protected Class<?> resolveClass(ObjectStreamClass description) throws IOException, ClassNotFoundException {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        try {
            return Class.forName(description.getName(), false, loader);
        } catch (ClassNotFoundException e) {
            return super.resolveClass(description);
        }
    }

    @Override
    protected Class<?> resolveProxyClass(String[] interfaces) throws IOException, ClassNotFoundException {
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        Class<?>[] found = new Class<?>[interfaces.length];
        for (int i = 0; i < interfaces.length; i++) {
            found[i] = Class.forName(interfaces[i], false, loader);
        }
        return Proxy.newProxyInstance(loader, found, (proxy, method, args) -> null).getClass();
    }
}
