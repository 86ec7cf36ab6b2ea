package org.limosa.engine;

/** The predefined reductions of single elements. */
public enum Reduction {
    MAX, MIN, SUM, PROD, LAND, BAND, LOR, BOR, LXOR, BXOR;

    /** Whether the reduction is defined for the type: logical ones for booleans, bitwise ones for integers. */
    public boolean fits(Type type) {
        return switch (this) {
            case LAND, LOR, LXOR -> type == Type.BOOLEAN;
            case BAND, BOR, BXOR ->
                type != Type.FLOAT && type != Type.DOUBLE && type != Type.BOOLEAN && type != Type.PACKED;
            default -> type != Type.BOOLEAN && type != Type.PACKED;
        };
    }
}
