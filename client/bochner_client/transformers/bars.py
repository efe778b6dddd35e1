"""A bar for rows that are transformed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Done = Callable[[int], object]
"""Is told how many more rows are done."""


@contextmanager
def rows_bar(n: int, is_shown: bool) -> Iterator[Done]:
    """A bar of tqdm for n rows, which is a widget in notebooks; ImportError if it is wanted and tqdm is not there."""
    if not is_shown:
        yield lambda _: None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("a progress bar needs tqdm: pip install 'bochner-client[progress]'") from error

    with tqdm(total=n, unit=" rows", unit_scale=True) as drawn:
        yield drawn.update
