"""Errors in a caller's input, said without HTTP. Their `detail` is one sentence for a person."""


class InvalidInput(Exception):
    """Input that no retry will mend: says what came and what was wanted.

    `pointer` is the JSON pointer (RFC 6901) to the offending member of the body, "" for the whole of it.
    """

    def __init__(self, detail: str, pointer: str = "") -> None:
        super().__init__(detail)
        self.detail, self.pointer = detail, pointer


class InvalidOption(Exception):
    """An option beside the input, here by its name, that no retry will mend: says what came and what was wanted."""

    def __init__(self, detail: str, option: str) -> None:
        super().__init__(detail)
        self.detail, self.option = detail, option


class TooLarge(Exception):
    """A request whose body, result or map passes a limit.

    `limit` is its name, a field of the settings, and `allowed` its value, in bytes unless the name says otherwise;
    `value` is what came, in the same unit.
    """

    def __init__(self, detail: str, *, limit: str, allowed: int, value: int) -> None:
        super().__init__(detail)
        self.detail, self.limit, self.allowed, self.value = detail, limit, allowed, value


class OutOfRange(Exception):
    """Numbers of an answer that are too large for the dtype in which it is wanted."""
