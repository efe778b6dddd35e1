"""What bulk work refuses, in words for a person."""


class Refused(ValueError):
    """Input, output or options that cannot be worked with: says what came and what was wanted."""


class Unreadable(Exception):
    """A file that cannot be worked with, or a row of it, counted from 0 where `row` is not None. Others go on."""

    def __init__(self, detail: str, row: int | None = None) -> None:
        super().__init__(detail)
        self.detail, self.row = detail, row

    def later(self, rows: int) -> "Unreadable":
        """The same, so many rows further on."""
        return Unreadable(self.detail, None if self.row is None else self.row + rows)

    def told(self, name: str) -> str:
        """What is wrong with the file of this name."""
        return f"{name}: {self.detail}" if self.row is None else f"{name}, row {self.row}: {self.detail}"


class Unwritable(Exception):
    """A new file cannot be written, and others could not be either."""


class Stopped(Exception):
    """The work is to end."""
