"""Progress of a job: shown as a bar in terminals and notebooks, or passed to a function."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bochner_client.records import JobEvent

Hear = Callable[[JobEvent], object]
"""Callback for the events of a job."""
Progress = bool | Hear
"""True for a progress bar, False for no display, or a function that is called with each event."""


@contextmanager
def shown(progress: Progress) -> Iterator[Hear]:
    """Yield the callback that shows the events of a job, for the duration of a with block."""
    if progress is True:
        with bar() as hear:
            yield hear
    else:
        yield progress or (lambda _: None)


@contextmanager
def bar() -> Iterator[Hear]:
    """Show a progress bar of tqdm, a widget in notebooks, and yield its callback; ImportError without tqdm."""
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
    """Return the step, objective and remaining time of an event, as far as they are known."""
    found = []
    if event.of is not None:
        found.append(f"step {event.step} of {event.of}")
    if event.objective is not None:
        found.append(f"objective {event.objective:.4g}")
    if event.eta_seconds is not None:
        found.append(f"{event.eta_seconds:.0f} s left")
    return ", ".join(found)
