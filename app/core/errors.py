"""Errors in a caller's input, independent of HTTP. Their `detail` is one sentence written for a person."""

from collections.abc import Sequence


class InvalidInput(Exception):
    """Invalid input; to retry does not help. `detail` says what was received and what is expected.

    `pointer` is the JSON pointer (RFC 6901) to the offending member of the body, "" for the whole body. `others` are
    pointers to more members with the same error.
    """

    def __init__(self, detail: str, pointer: str = "", others: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.detail, self.pointer, self.others = detail, pointer, others


class InvalidOption(Exception):
    """Invalid option of a request, other than its input; to retry does not help.

    `option` is its name; `detail` says what was received and what is expected.
    """

    def __init__(self, detail: str, option: str) -> None:
        super().__init__(detail)
        self.detail, self.option = detail, option


class TooLarge(Exception):
    """A request whose body, result or map exceeds a limit.

    `limit` is the name of the limit, a field of the settings. `allowed` is its value, in bytes unless the name says
    otherwise; `value` is the size found, in the same unit.
    """

    def __init__(self, detail: str, *, limit: str, allowed: int, value: int) -> None:
        super().__init__(detail)
        self.detail, self.limit, self.allowed, self.value = detail, limit, allowed, value


class OutOfRange(Exception):
    """Numbers of an answer that are too large for the dtype that the client requested."""
