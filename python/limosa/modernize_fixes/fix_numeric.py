"""Numeric, numarray and ``numpy.oldnumeric``.

Their modules become `limosa.oldnumeric`, ``a.typecode()`` becomes ``a.dtype.char``.
"""

from typing import Any

from fissix import fixer_base
from fissix.fixer_util import Name


class FixNumeric(fixer_base.BaseFix):  # type: ignore[misc]
    """Turns imports and the method."""

    PATTERN = """
    import_name< 'import' module=('Numeric' | 'numarray') >
    | import_name< 'import' dotted_as_names< any* module=('Numeric' | 'numarray') any* > >
    | import_name< 'import' module=dotted_name< 'numpy' '.' 'oldnumeric' > >
    | import_name< 'import' dotted_as_name< known=('Numeric' | 'numarray') 'as' any > >
    | import_name< 'import' dotted_as_name< known=dotted_name< 'numpy' '.' 'oldnumeric' > 'as' any > >
    | import_name< 'import' dotted_as_names< any* dotted_as_name< known=('Numeric' | 'numarray') 'as' any > any* > >
    | import_from< 'from' known=('Numeric' | 'numarray') 'import' any* >
    | import_from< 'from' known=dotted_name< 'numpy' '.' 'oldnumeric' > 'import' any* >
    | power< any+ trailer< '.' method='typecode' > call=trailer< '(' ')' > any* >
    """

    def transform(self, node: Any, results: dict[str, Any]) -> None:
        """Change what was found where it is."""
        if "method" in results:
            method = results["method"]
            method.replace(Name("dtype"))
            results["call"].replace([_attribute("char")])
            return
        found = results.get("module") or results["known"]
        found = found[0] if isinstance(found, list) else found
        name = str(found).strip()
        new = "limosa.oldnumeric" if "known" in results or "." in name else f"limosa.oldnumeric as {name}"
        found.replace(Name(new, prefix=found.prefix))


def _attribute(name: str) -> Any:
    """Give ``.name``."""
    from fissix.fixer_util import Dot
    from fissix.pygram import python_symbols as symbols
    from fissix.pytree import Node

    return Node(symbols.trailer, [Dot(), Name(name)])
