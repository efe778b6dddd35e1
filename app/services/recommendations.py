"""Which map to take: recommendations, checked and ready to run."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from app.core.arrays import PostedRows, Rows, vectors
from app.core.building import Building
from app.core.datasets import Reference, sampled
from app.core.diagnostics import Finding
from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.progress import Progress
from app.core.recommendations import KernelMember, RecommendationOptions
from app.core.recommendations.answer import Ranking, drawing
from app.core.recommendations.candidates import Wanted, fitting, learned_from, recommended_bytes, widest_map_bytes
from app.core.recommendations.held_out import FEWEST_ROWS, HeldOut, held_out
from app.core.recommendations.trials import MOST_ROWS, check_rows, recommended
from app.services.asked import Parse, rows_of, with_scale, without_scale
from app.services.building import kept_rows
from app.services.datasets import Datasets, GatedRows, dataset_digests
from app.services.limits import Limits
from app.services.measurements import RECOMMEND, Measurement


def _gate(seed: int) -> Callable[[PostedRows, str], Rows]:
    """A gate for the rows to recommend for. Of more than `MOST_ROWS` rows it takes a sample of this seed."""

    def some(posted: PostedRows, pointer: str) -> Rows:
        n = posted.shape[0]
        some = posted[sampled(n, MOST_ROWS, seed)] if n > MOST_ROWS else posted
        return vectors(some, some.shape[1], np.dtype(np.float32), pointer)

    return some


def _taken(n: int, reference: Reference, seed: int) -> NDArray[np.intp]:
    """The numbers of the rows of a dataset of n rows that come through the gate of this seed."""
    numbers = np.arange(n) if reference.rows is None else sampled(n, reference.rows, reference.seed)
    return numbers[sampled(len(numbers), MOST_ROWS, seed)] if len(numbers) > MOST_ROWS else numbers


class Recommendations(NamedTuple):
    """Prepares recommendations."""

    datasets: Datasets
    """The datasets that samplers may learn from."""
    limits: Limits
    """The limits on one request."""
    max_job_bytes: int
    """The most memory that trials may take."""
    threads: int
    """How many a trial may use; the times that it measures are of so many."""

    def _kernel(
        self, options: RecommendationOptions, posted: PostedRows | Reference, width: int, parse: Parse
    ) -> Kernel:
        """The kernel of a request, its length scale taken from rows where the request names how.

        These are all rows of the dataset that it names for this, or of that of the request; else all that were posted.

        Raises:
            InvalidInput: the kernel has no length scale, or the rows give none.
        """
        described, scale = without_scale(options.kernel, parse)
        kernel: Kernel = parse(KernelMember, to_json({"kernel": described})).kernel
        if scale is None:
            return kernel
        if scale.named is not None:
            rows = rows_of(self.datasets, width, *scale.named)
        elif isinstance(posted, Reference):
            rows = rows_of(self.datasets, width, posted.dataset, "/dataset")
        else:
            rows = vectors(posted, width, np.dtype(np.float64), "/vectors")
        return with_scale(kernel, scale, rows, threads=self.threads)

    def measurement(
        self,
        options: RecommendationOptions,
        posted: Mapping[str, PostedRows | Reference],
        parse: Parse,
    ) -> Measurement:
        """A recommendation, ready to run; `parse` reads its kernel.

        Raises:
            InvalidInput: the rows or the kernel will not do.
            TooLarge: what may be recommended could not be put.
            DatasetNotFound: a sampler learns from a dataset that is not there.
        """
        given = self.datasets.gated(posted, _gate(options.seed))
        rows = given.rows["vectors"]
        n, d = rows.shape
        kernel = self._kernel(options, posted["vectors"], d, parse)
        if not kernel.compares_sparse:
            self._check_dense(rows)
        check_rows(rows, kernel)
        asked = Wanted(options.budget, options.target_error, options.samplers, objective=options.objective)
        asked.check()
        asked, shared = self._shared_out(asked, given, kernel, options.seed)
        if shared is not None:
            rows = rows[shared.measured]
            n = rows.shape[0]
        map_bytes = self.limits.max_map_bytes
        wanted = fitting(asked, n, d, kernel, map_bytes=map_bytes, work_bytes=self.max_job_bytes)
        self.limits.check_map(widest_map_bytes(d, wanted, kernel))  # the map that is best must be allowed
        learned = sorted(learned_from(kernel, d, wanted))
        digests = {name: self.datasets.digest(name) for name in learned} | given.digests
        kept = kept_rows(self.datasets, digests)

        def run(progress: Progress) -> Finding[Ranking]:
            # Datasets are read before the first trial: later, a missing one would look like a sampler's refusal.
            rows_of = {name: kept(name, "/samplers") for name in learned}
            if shared is not None and wanted.dataset is not None:
                rows_of[wanted.dataset] = rows_of[wanted.dataset][shared.learned]
            building = Building(self.threads, progress, lambda dataset, _: rows_of[dataset])
            answer = recommended(rows, kernel, wanted, seeds=options.seeds, seed=options.seed, building=building)
            return Finding(answer, drawing(answer))

        return Measurement(
            kind=RECOMMEND,
            subject={},
            options=options.model_copy(update={"kernel": kernel.model_dump(mode="json")}),
            given=given,
            digests=dataset_digests(digests),
            run=run,
            nbytes=recommended_bytes(n, d, wanted, kernel),
        )

    def _shared_out(self, asked: Wanted, given: GatedRows, kernel: Kernel, seed: int) -> tuple[Wanted, HeldOut | None]:
        """The wishes with the dataset that the rows are of, shared out if a sampler is to learn from it."""
        reference = given.references.get("vectors")
        if reference is None:
            return asked, None
        found, digest = self.datasets.read(Reference(reference.dataset))
        if digest != given.digests[reference.dataset]:
            raise InvalidInput(f"dataset {reference.dataset!r} was replaced meanwhile; ask again", "/dataset")
        n = found.shape[0]
        if n < FEWEST_ROWS and asked.samplers is None:
            return asked, None
        of_dataset = asked._replace(dataset=reference.dataset)
        if reference.dataset not in learned_from(kernel, found.shape[1], of_dataset):
            return asked, None
        shared = held_out(n, _taken(n, reference, seed), seed)
        return of_dataset._replace(learned_rows=len(shared.learned)), shared

    def _check_dense(self, rows: Rows) -> None:
        """Raise TooLarge if sparse rows, made dense, would take more memory than a request may."""
        self.limits.check_result(8 * rows.shape[0] * rows.shape[1])
