"""The surroundings of the building of a map: threads, progress, and the rows of datasets."""

from collections.abc import Callable
from typing import NamedTuple

from app.core.arrays import Rows
from app.core.errors import InvalidInput
from app.core.progress import Progress

RowsOf = Callable[[str, str], Rows]
"""Gives the rows of a dataset, from its name and where the spec names it; InvalidInput if there is no such dataset."""


def no_rows(dataset: str, pointer: str) -> Rows:
    """Refuse a dataset where there are none."""
    raise InvalidInput(f"dataset {dataset!r} is not at hand where this map is built; a box can be given", pointer)


class Building(NamedTuple):
    """The surroundings of a build; as they are here, those of plain use."""

    threads: int = 1
    """How many a build may use; what it makes does not depend on it."""
    progress: Progress = Progress()
    """Takes its progress and states, and gives back the state to go on from."""
    rows: RowsOf = no_rows
