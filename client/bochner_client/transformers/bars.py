"""Progress bar of transformed rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Done = Callable[[int], object]
"""Callback for the number of rows that have just been transformed."""


@contextmanager
def rows_bar(n: int, is_shown: bool) -> Iterator[Done]:
    """Show a tqdm bar for `n` rows, a widget in notebooks, if `is_shown`; ImportError if tqdm is then not installed."""
    if not is_shown:
        yield lambda _: None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("a progress bar needs tqdm: pip install 'bochner-client[progress]'") from error

    with tqdm(total=n, unit=" rows", unit_scale=True) as drawn:
        yield drawn.update
