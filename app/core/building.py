"""What the building of a map may ask of the world around it: what long work may, and rows of datasets."""

from app.core.arrays import Rows
from app.core.errors import InvalidInput
from app.core.work import Work


class Building(Work):
    """The surroundings of a build, here those of plain use: no datasets either.

    Args:
        threads: how many a build may use; what it makes does not depend on it.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def rows(self, dataset: str, pointer: str) -> Rows:
        """The rows of a dataset, which the spec names at `pointer`.

        Raises:
            InvalidInput: there is no such dataset.
        """
        raise InvalidInput(f"dataset {dataset!r} is not at hand where this map is built; a box can be given", pointer)
