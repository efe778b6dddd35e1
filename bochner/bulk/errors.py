"""Exceptions of bulk work, with messages for people."""


class Refused(ValueError):
    """Input, output or options cannot be used; the message says what was received and what was expected."""


class Unreadable(Exception):
    """A file, or the row `row` of it, counted from 0, cannot be used. Work on other files goes on."""

    def __init__(self, detail: str, row: int | None = None) -> None:
        super().__init__(detail)
        self.detail, self.row = detail, row

    def later(self, rows: int) -> "Unreadable":
        """Return the same error with the row number increased by `rows`."""
        return Unreadable(self.detail, None if self.row is None else self.row + rows)

    def told(self, name: str) -> str:
        """Return the error message for the file of this name."""
        return f"{name}: {self.detail}" if self.row is None else f"{name}, row {self.row}: {self.detail}"


class Unwritable(Exception):
    """A new file cannot be written; other files could not be written either."""


class Stopped(Exception):
    """The work is to end."""
