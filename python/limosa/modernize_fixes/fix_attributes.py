"""Names that Python 3, or today's NumPy, has elsewhere: ``time.clock``, ``string.letters``, ``numpy.float``."""

from typing import Any

from fissix import fixer_base
from fissix.fixer_util import Name

_NUMPY = {
    **{name: name for name in ("bool", "complex", "float", "int", "object", "str")},  # were Python's own types
    "long": "int",
    "unicode": "str",
    "float_": ".float64",
    "complex_": ".complex128",
    "string_": ".bytes_",
    "unicode_": ".str_",
    "alltrue": ".all",
    "sometrue": ".any",
    "product": ".prod",
    "cumproduct": ".cumprod",
    "in1d": ".isin",
    "Inf": ".inf",
    "Infinity": ".inf",
    "infty": ".inf",
    "NaN": ".nan",
}

_RENAMED = {
    "numpy": _NUMPY,
    "np": _NUMPY,
    "string": {"letters": ".ascii_letters", "lowercase": ".ascii_lowercase", "uppercase": ".ascii_uppercase"},
    "time": {"clock": ".process_time"},
}
"""By the name of a module, as scripts write it: old names and new ones.

New ones are in the same module (with a dot) or of Python itself.
"""


class FixAttributes(fixer_base.BaseFix):  # type: ignore[misc]
    """Turns names that are written with their module."""

    PATTERN = " | ".join(
        f"power< module='{module}' trailer< '.' name=({' | '.join(map(repr, names))}) > rest=any* >"
        for module, names in _RENAMED.items()
    )

    def transform(self, node: Any, results: dict[str, Any]) -> Any:
        """Change the name where it is, or put Python's own in the place of both."""
        module, name = results["module"], results["name"]
        name = name[0] if isinstance(name, list) else name
        new = _RENAMED[module.value][name.value]
        if new.startswith("."):
            name.replace(Name(new[1:]))
            return None
        rest = [part.clone() for part in results["rest"]]
        own = Name(new, prefix=node.prefix)
        return type(node)(node.type, [own, *rest]) if rest else own
