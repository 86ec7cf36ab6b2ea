"""How numbers, sizes and numbers of ranks are written, the same everywhere. Pure functions."""


def number(value: float) -> str:
    """Write a number with three digits, without exponents: 0.0123, 1.23, 123, 12300."""
    if value == 0:
        return "0"
    digits = f"{value:.3g}"
    if "e" not in digits:
        return digits
    return f"{float(digits):.0f}" if abs(value) >= 1 else f"{float(digits):.9f}".rstrip("0")


def ranks(count: int) -> str:
    """Write a number of ranks: 1 rank, 8 ranks."""
    return f"{count} rank{'' if count == 1 else 's'}"


def size(count: int) -> str:
    """Write a number of bytes: 8 B, 64 KB, 4 MB (powers of 1024)."""
    for step, unit in ((1 << 20, "MB"), (1 << 10, "KB")):
        if count >= step and count % step == 0:
            return f"{count // step} {unit}"
    return f"{count} B"


def seconds(value: float) -> str:
    """Write a time in the unit that fits it: 1.23 us, 45.6 ms, 7.89 s."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{number(value / scale)} {unit}"
    return f"{number(value / 1e-6)} us"
