"""Shows how far a job is: as a bar, in terminals and notebooks, or to a function of one's own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bochner_client.records import JobEvent

Hear = Callable[[JobEvent], object]
"""Is told what a job is at."""
Progress = bool | Hear
"""True for a bar, False for nothing; or a function that is told."""


@contextmanager
def shown(progress: Progress) -> Iterator[Hear]:
    """What tells of a job, for the length of a with block."""
    if progress is True:
        with bar() as hear:
            yield hear
    else:
        yield progress or (lambda _: None)


@contextmanager
def bar() -> Iterator[Hear]:
    """A progress bar of tqdm, which is a widget in notebooks; ImportError if tqdm is not there."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("a progress bar needs tqdm: pip install 'bochner-client[progress]'") from error

    with tqdm(total=100, unit="%", bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}") as drawn:

        def hear(event: JobEvent) -> None:
            drawn.set_description_str(event.state, refresh=False)
            drawn.n = round(100 * event.progress, 1)
            drawn.set_postfix_str(words(event), refresh=False)
            drawn.refresh()

        yield hear


def words(event: JobEvent) -> str:
    """Step, objective and time left, as far as they are known."""
    found = []
    if event.of is not None:
        found.append(f"step {event.step} of {event.of}")
    if event.objective is not None:
        found.append(f"objective {event.objective:.4g}")
    if event.eta_seconds is not None:
        found.append(f"{event.eta_seconds:.0f} s left")
    return ", ".join(found)
