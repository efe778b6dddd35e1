"""Which map to take: recommendations, prepared from a request and run."""

from typing import Annotated, Any

import numpy as np
import orjson
from pydantic import Field

from app.core.arrays import Rows, dense, vectors
from app.core.datasets import sampled
from app.core.diagnostics import Finding
from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.model import Frozen
from app.core.progress import Progress
from app.core.recommendations import (
    MOST_ROWS,
    Heuristic,
    Ranking,
    Wanted,
    drawing,
    fitting,
    length_scale,
    ranking,
    recommended,
    recommended_bytes,
    widest_map_bytes,
)
from app.core.samplers import Sampler
from app.formats.json_body import bytes_per_row, members
from app.formats.json_rows import dimension, named_datasets, vectors_or_dataset
from app.services.building import kept_rows
from app.services.datasets import Datasets
from app.services.diagnostics import Parse, Prepared
from app.services.limits import Limits

_ROW_MEMBERS = ("vectors", "input_dim", "dataset", "rows")


class KernelMember(Frozen):
    """The kernel of a request, its length scale a number by now."""

    kernel: Kernel


class RecommendationOptions(Frozen):
    """What a request for recommendations says beside its rows."""

    kernel: Annotated[
        dict[str, Any],
        Field(description='As in a spec; its length_scale may also be "nearest_neighbor" or "median", from the rows.'),
    ]
    budget: Annotated[int, Field(ge=2, le=1 << 20, description="Most output columns, or codes.")] | None = None
    target_error: (
        Annotated[float, Field(gt=0, description="Relative Frobenius error of the Gram matrix to reach.")] | None
    ) = None
    samplers: (
        Annotated[tuple[Sampler, ...], Field(min_length=1, max_length=50, description="What to try; kinds or objects.")]
        | None
    ) = None
    seeds: Annotated[int, Field(ge=1, le=20, description="Maps to measure of each spec.")] = 3
    seed: Annotated[int, Field(ge=0, lt=1 << 64, description="Of the specs and of the sample of rows.")] = 0


class Recommendations:
    """Reads requests for recommendations."""

    def __init__(self, datasets: Datasets, limits: Limits, max_job_bytes: int) -> None:
        self._datasets = datasets
        self._limits = limits
        self._max_job_bytes = max_job_bytes

    def prepare(self, body: bytes, parse: Parse[Any]) -> Prepared:
        """Read a request: rows or a dataset, a kernel, and what is wanted of the map.

        Errors are measured on up to `MOST_ROWS` rows, from which a length scale is taken too; of more, on a sample.

        Args:
            body: JSON.
            parse: reads the options.

        Raises:
            InvalidInput, TooLarge, and what Datasets.rows raises.
        """
        document = members(
            body,
            ["kernel"],
            [*_ROW_MEMBERS, *RecommendationOptions.model_fields],
            bytes_per_list=bytes_per_row(1),
        )
        given = {name: document[name] for name in document if name in RecommendationOptions.model_fields}
        if isinstance(given.get("samplers"), list):
            given["samplers"] = [{"kind": one} if isinstance(one, str) else one for one in given["samplers"]]
        options: RecommendationOptions = parse(RecommendationOptions, orjson.dumps(given))
        if options.budget is None and options.target_error is None:
            raise InvalidInput("budget, target_error, or both are wanted; neither came", "/budget")
        rows = self._rows(document, options.seed)
        if options.kernel.get("kind") != "gmm" or options.kernel.get("center") is not None:
            self._limits.check_result(8 * rows.shape[0] * rows.shape[1])  # sparse rows are made dense
        kernel: Kernel = parse(KernelMember, orjson.dumps({"kernel": _scaled(options.kernel, rows)})).kernel
        kernel.check(rows.shape[1])
        wanted = Wanted(options.budget, options.target_error)
        wanted = fitting(
            wanted,
            rows.shape[0],
            rows.shape[1],
            options.samplers,
            kernel,
            map_bytes=self._limits.max_map_bytes,
            work_bytes=self._max_job_bytes,
        )
        self._limits.check_map(widest_map_bytes(rows.shape[1], wanted, kernel))  # what is best is to be put
        learned = sorted({dataset for one in options.samplers or () if (dataset := one.learned_from) is not None})
        kept = kept_rows(self._datasets, {name: self._datasets.get(name).digest for name in learned})

        def run(progress: Progress) -> Finding[Ranking]:
            # Before the first trial: what is missing halfway would be told as a refusal of some of them.
            known = {name: kept(name, "/samplers") for name in learned}
            found = recommended(
                rows,
                kernel,
                wanted,
                options.samplers,
                seeds=options.seeds,
                seed=options.seed,
                progress=progress,
                rows_of=lambda name, _: known[name],
            )
            answer = ranking(rows.shape[0], found)
            return Finding(answer, drawing(answer))

        return Prepared(
            run,
            recommended_bytes(rows.shape[0], rows.shape[1], wanted, options.samplers, kernel),
            datasets=(*named_datasets(document), *learned),
        )

    def _rows(self, document: dict[str, Any], seed: int) -> Rows:
        width = dimension(document["input_dim"]) if "input_dim" in document else None
        posted = self._datasets.resolved(vectors_or_dataset(document, width))
        n = posted.shape[0]
        if n > MOST_ROWS:
            posted = posted[sampled(n, MOST_ROWS, seed)]
        return vectors(posted, posted.shape[1], np.dtype(np.float32))


def _scaled(kernel: dict[str, Any], rows: Rows) -> dict[str, Any]:
    """The kernel with a length scale taken from the rows, where it names how."""
    name, kind = kernel.get("length_scale"), str(kernel.get("kind"))
    if not isinstance(name, str):
        return kernel
    if kind in ("gmm", "correlation_rbf"):
        raise InvalidInput(f"kernel {kind} has no length_scale", "/kernel/length_scale")
    if name not in list(Heuristic):
        choices = " or ".join(f'"{one.value}"' for one in Heuristic)
        raise InvalidInput(f'"{name[:80]}" came; {choices} or a number is wanted', "/kernel/length_scale")
    return {**kernel, "length_scale": length_scale(Heuristic(name), dense(rows), kind)}
