"""How long work says how far it is."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Is told how many steps are done, and of how many."""


def unwatched(step: int, of: int) -> None:
    """Progress that nobody is told."""
