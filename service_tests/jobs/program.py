"""A worker, or a service, with kinds of jobs that only tests have.

Run with "worker" or "serve" and options of the same command of the service. The kinds do what real ones do, with
states that show at once if anything was lost or done twice.
"""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from app import __main__, handlers
from app.core.arrays import Matrix
from app.core.building import Building
from app.core.diagnostics.max_error import SetErrors
from app.core.errors import InvalidInput
from app.core.kernels.base import SpectralKernel
from app.core.progress import Pause, Progress
from app.core.samplers.base import FrequencySet
from app.core.samplers.monte_carlo import MonteCarlo
from app.jobs import worker
from app.jobs.job_context import Handlers, JobContext
from app.settings import Settings
from app.store.errors import NewerVersion
from service_tests.jobs.site import PROGRAM

worker._TURN_SECONDS = 0.5
_service_kinds = handlers.job_handlers
STEP_SECONDS = 0.02
# So many frequencies of the slow Monte Carlo are drawn by a call that cannot be interrupted.
LONG_CALL = 5


def walk(steps: int, seed: int, run: Progress, pause: float = STEP_SECONDS) -> float:
    """A random walk whose end hangs on every step of it; `steps` of them, each kept as soon as it may be."""
    rng = np.random.Generator(np.random.PCG64(seed))
    step, at = 0, 0.5
    kept = run.restore()
    if kept:
        state = json.loads(kept)
        step, at = state["step"], float.fromhex(state["at"])
        rng.bit_generator.state = state["rng"]
    while step < steps:
        time.sleep(pause)
        at = 3.9 * at * (1 - at) + 1e-3 * rng.random()
        at = at % 1.0
        step += 1
        run.report(step, steps, at)
        state = {"step": step, "at": at.hex(), "rng": rng.bit_generator.state}
        run.checkpoint(json.dumps(state).encode)
    return at


def test_walk(payload: Mapping[str, Any], context: JobContext) -> dict[str, bytes]:
    """A walk; its end in two media types."""
    end = walk(payload["steps"], payload["seed"], context, payload.get("pause", STEP_SECONDS))
    note = payload.get("note")
    if note:  # a line for each run to completion
        with Path(note).open("a", encoding="utf-8") as file:
            file.write(f"{context.job_id}\n")
    return {"application/json": json.dumps({"end": end.hex()}).encode(), "text/plain": f"{end:.3f}".encode()}


def test_echo(payload: Mapping[str, Any], context: JobContext) -> dict[str, bytes]:
    """What was attached."""
    return {"application/octet-stream": context.attachment(payload["name"])}


def test_fail(payload: Mapping[str, Any], context: JobContext) -> None:
    """Every way to fail."""
    del context
    match payload["how"]:
        case "invalid":
            raise InvalidInput("there is no such thing", "/sampler/dataset")
        case "newer":
            raise NewerVersion("map 'm'", "schema version 3", 2)
        case "defect":
            raise ZeroDivisionError("secret")
        case "memory":
            hoard = [np.ones(1 << 20) for _ in range(payload["count"])]
            time.sleep(60)
            del hoard
        case "time":
            time.sleep(600)


def compute(payload: Mapping[str, Any], context: JobContext) -> None:
    """A compiled loop that looks at nothing."""
    del payload
    context.report(0, 1)
    matrix = np.ones((2000, 2000))
    while True:
        matrix = matrix @ matrix / 2000


KINDS: Handlers = {"test-walk": test_walk, "test-echo": test_echo, "test-fail": test_fail, "test-compute": compute}


class Slow(MonteCarlo):
    """Monte Carlo that takes long: a walk of 0.8 seconds for each frequency decides what it gives."""

    def learned_set(
        self, kernel: SpectralKernel, s: int, input_dim: int, rng: np.random.Generator, building: Building
    ) -> FrequencySet:
        if input_dim == 1:  # the map of the warm-up, for which nobody is to wait
            return self.frequency_set(kernel, s, input_dim, rng)
        if s == LONG_CALL:
            building.progress.before_long_call(bytes)
        end = walk(40 * s, int(rng.integers(1 << 30)), building.progress)
        if s == 1:
            raise InvalidInput("1 is an unlucky number", "/s")
        drawn = self.frequency_set(kernel, s, input_dim, rng)
        return FrequencySet(drawn.frequencies * end, drawn.weights)


_errors_at = SetErrors.at


def slow_errors_at(self: SetErrors, diameter: float, first: int, lags: Matrix, pause: Pause) -> Matrix:
    """The errors at a block of points, which take a step's time at least, so that a diagnostic is long anywhere."""
    time.sleep(STEP_SECONDS)
    return _errors_at(self, diameter, first, lags, pause)


def kinds(settings: Settings) -> Handlers:
    """Those of the service, and the ones above."""
    return {**_service_kinds(settings), **KINDS}


if __name__ == "__main__":
    # The spec knows its samplers by class; this one takes the behaviour of another.
    MonteCarlo.learned_set = Slow.learned_set  # type: ignore[method-assign, assignment]
    SetErrors.at = slow_errors_at  # type: ignore[method-assign]
    handlers.job_handlers = kinds
    worker.PROGRAM = PROGRAM
    sys.argv[0] = "bochner"
    __main__.main()
