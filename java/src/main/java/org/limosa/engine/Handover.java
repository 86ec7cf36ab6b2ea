package org.limosa.engine;

import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.Set;
import java.util.UUID;
import org.limosa.engine.local.RankLoader;

/**
 * Objects that ranks of the same Java machine hand over without serialisation: immutable ones of classes that both have
 * go as they are, and arrays of numbers are copied once. All others are serialised.
 */
public final class Handover {
    private static final Set<Class<?>> IMMUTABLE = Set.of(
            String.class, Boolean.class, Character.class, Byte.class, Short.class, Integer.class, Long.class,
            Float.class, Double.class, BigInteger.class, BigDecimal.class, UUID.class, Duration.class, Instant.class,
            LocalDate.class, LocalTime.class, LocalDateTime.class);

    private Handover() {}

    /** The items for the receiver, in the same array; null if one of them must be serialised. */
    public static Object[] of(Object[] items) {
        // A filter is for streams.
        if (ObjectStream.isFiltered()) {
            return null;
        }
        for (int i = 0; i < items.length; i++) {
            Object item = items[i];
            if (item == null || isImmutable(item)) {
                continue;
            }
            // Several could be the same array, which must be the same for the receiver, too.
            if (items.length > 1 || !item.getClass().isArray() || !item.getClass().componentType().isPrimitive()) {
                return null;
            }
            items[i] = copyOf(item);
        }
        return items;
    }

    private static boolean isImmutable(Object item) {
        return IMMUTABLE.contains(item.getClass())
                || item instanceof Enum<?> constant && RankLoader.isShared(constant.getDeclaringClass());
    }

    private static Object copyOf(Object array) {
        int length = Array.getLength(array);
        Object copy = Array.newInstance(array.getClass().componentType(), length);
        System.arraycopy(array, 0, copy, 0, length);
        return copy;
    }
}
