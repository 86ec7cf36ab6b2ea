"""Functions of module ``string`` that Python 3 has only as methods: ``string.join(x, s)`` becomes ``s.join(x)``."""

from typing import Any

from fissix import fixer_base
from fissix.fixer_util import Call, Dot, Name, String, parenthesize
from fissix.pgen2 import token
from fissix.pygram import python_symbols as symbols

_TYPES = {"atoi": "int", "atol": "int", "atof": "float"}
_METHODS = (
    "capitalize center count expandtabs find index ljust lower lstrip replace rfind rindex rjust rsplit rstrip split "
    "splitfields strip swapcase translate upper zfill"
).split()
_JOINS = ("join", "joinfields")


class FixStringModule(fixer_base.BaseFix):  # type: ignore[misc]
    """Turns calls that name the module; imports of single functions are left to their author."""

    PATTERN = f"""
    power< 'string' trailer< '.' function=({"|".join(repr(name) for name in (*_TYPES, *_METHODS, *_JOINS))}) >
           trailer< '(' args=any ')' > rest=any* >
    """

    def transform(self, node: Any, results: dict[str, Any]) -> Any:
        """Make the call of a method, or of a type."""
        function = results["function"][0] if isinstance(results["function"], list) else results["function"]
        given = results["args"]
        args = (
            [child.clone() for child in given.children if child.type != token.COMMA]
            if given.type == symbols.arglist
            else [given.clone()]
        )
        if any(arg.type == symbols.argument for arg in args):
            self.cannot_convert(node, "a keyword argument")
            return None
        for arg in args:
            arg.prefix = ""
        if function.value in _TYPES:
            call: list[Any] = [Call(Name(_TYPES[function.value]), _separated(args))]
        else:
            if function.value in _JOINS:
                owner, args = (args[1] if len(args) > 1 else String("' '")), args[:1]
            else:
                owner, args = args[0], args[1:]
            method = {"joinfields": "join", "splitfields": "split"}.get(function.value, function.value)
            if owner.type not in {token.NAME, token.STRING, symbols.power, symbols.atom}:
                owner = parenthesize(owner)
            call = [owner, Dot(), Call(Name(method), _separated(args))]
        new = type(node)(symbols.power, [*call, *(rest.clone() for rest in results["rest"])])
        new.prefix = node.prefix
        return new


def _separated(args: list[Any]) -> list[Any]:
    """Put commas between arguments."""
    from fissix.fixer_util import Comma

    made: list[Any] = []
    for i, arg in enumerate(args):
        if i:
            made.append(Comma())
            arg.prefix = " "
        made.append(arg)
    return made
