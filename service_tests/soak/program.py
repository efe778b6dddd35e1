"""The service, with a line written down for each job that is worked to its end, and with a fault if one is named.

Run it as the service is run; `faults.py` has the faults, one of which may stand before the command.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app import __main__, handlers
from app.jobs.job_context import Handler, Handlers, JobContext
from app.settings import Settings
from service_tests.soak.faults import FAULTS

_service_handlers = handlers.job_handlers


def noting(handler: Handler) -> Handler:
    """The same handler, which writes down the job's id when its work is done."""

    def work(payload: Mapping[str, Any], context: JobContext) -> Any:
        result = handler(payload, context)
        with Path(os.environ["SOAK_DONE"]).open("a", encoding="ascii") as done:
            done.write(f"{context.job_id}\n")
        return result

    return work


def noted_handlers(settings: Settings) -> Handlers:
    """The handlers of the service, all of which write down what they have done."""
    return {kind: noting(handler) for kind, handler in _service_handlers(settings).items()}


if __name__ == "__main__":
    handlers.job_handlers = noted_handlers
    if sys.argv[1] in FAULTS:
        FAULTS[sys.argv.pop(1)]()
    sys.argv[0] = "bochner"
    __main__.main()
