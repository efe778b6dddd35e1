"""What the building of a map may ask of the world around it: rows of datasets, and a place for its progress."""

from app.core.arrays import Rows
from app.core.errors import InvalidInput


class Building:
    """The surroundings of a build, here those of plain use: no datasets, nobody who watches, nothing to resume.

    Whoever runs builds in the background derives from it. A build that is resumed from any state it gave to
    `checkpoint` makes the arrays that it would have made undisturbed, bit for bit.

    Args:
        threads: how many a build may use; what it makes does not depend on it.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def progress(self, step: int, of: int, objective: float | None) -> None:
        """`step` of the `of` steps are done; the objective there, where one is minimised. May raise to end it all."""

    def checkpoint(self, state: bytes) -> None:
        """All that is needed to go on from here. Called often: whoever writes it down does so when it is time."""

    def restored(self) -> bytes | None:
        """The state of an earlier attempt at the same build to go on from, None to begin."""
        return None

    def rows(self, dataset: str, pointer: str) -> Rows:
        """The rows of a dataset, which the spec names at `pointer`.

        Raises:
            InvalidInput: there is no such dataset.
        """
        raise InvalidInput(f"dataset {dataset!r} is not at hand where this map is built; a box can be given", pointer)
