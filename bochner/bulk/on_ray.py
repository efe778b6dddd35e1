"""Bulk work on a Ray cluster: Ray Data sends the tasks to its workers and returns their outcomes."""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import ray

from app.processors import available
from bochner.bulk.errors import Refused, Unwritable
from bochner.bulk.runs import Runner
from bochner.bulk.work import Outcome, Task, Told, Work


def on_ray(address: str | None) -> Runner:
    """Return a runner that uses the Ray cluster at an address, or a cluster started on this machine if it is None."""
    return partial(_run, address)


class Batches:
    """Function that Ray Data applies to batches of task numbers. Each worker process makes its own instance."""

    def __init__(self, work: Work, tasks: list[Task]) -> None:
        self._work, self._tasks = work, tasks

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """Run the tasks of a batch; return their outcomes as JSON, or an error message if no file can be written."""
        try:
            outcomes = [self._work(self._tasks[number], _tell_nobody) for number in batch["item"]]
        except (Refused, Unwritable) as error:
            return {"outcome": [json.dumps(str(error))]}
        return {"outcome": [json.dumps(outcome) for outcome in outcomes]}


def _tell_nobody(rows: int, before: bool) -> None:
    del rows, before


def _run(address: str | None, work: Work, tasks: list[Task], told: Told) -> Iterator[Outcome]:
    try:
        ray.init(
            address=address or "local",
            num_cpus=None if address else available(),
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise Refused(f"--ray {address}: {error}") from None
    try:
        yield from _outcomes(work, tasks, told)
    finally:
        ray.shutdown()


def _outcomes(work: Work, tasks: list[Task], told: Told) -> Iterator[Outcome]:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    resources: dict[str, float] = ray.cluster_resources()
    processors = max(1, int(resources.get("CPU", 1)))
    # A copy, without the map that this process has opened.
    work = replace(work, computing=replace(work.computing))
    numbers = ray.data.from_items(list(range(len(tasks))), override_num_blocks=len(tasks))
    done = numbers.map_batches(
        Batches,
        fn_constructor_args=(work, tasks),
        batch_size=1,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=min(processors, len(tasks))),
    )
    for row in done.iter_rows():
        found = json.loads(row["outcome"])
        if isinstance(found, str):
            raise Unwritable(found)
        outcome = Outcome(*found)
        outcome = outcome._replace(warnings=tuple(outcome.warnings))
        told(outcome.rows - outcome.new, True)
        told(outcome.new, False)
        yield outcome
