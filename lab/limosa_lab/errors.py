"""The one exception that ends the program with a sentence for the user."""

USAGE = 2
ENVIRONMENT = 3


class LabError(Exception):
    """Something that the user can understand and mostly mend.

    Parameters
    ----------
    message
        What is wrong, with the offending value.
    hint
        What to do about it, if that is known.
    code
        The exit code: `USAGE` for what the user has given, `ENVIRONMENT` for what something outside has refused.

    """

    def __init__(self, message: str, hint: str | None = None, code: int = USAGE) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code
