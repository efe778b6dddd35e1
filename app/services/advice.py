"""Advice on indexes, checked and ready to run."""

from typing import NamedTuple

from app.core.datasets import Reference
from app.core.diagnostics import Finding
from app.core.indexes.advice import AdviceOptions, advice_bytes, advised, check
from app.core.indexes.answer import Advice
from app.core.progress import Progress
from app.services.datasets import Datasets, at_their_datasets, dataset_digests
from app.services.maps import Maps
from app.services.measurements import ADVISE, Measurement
from app.services.vectors import warnings_of

_MEMORY_ADVICE = (
    "take a map of fewer hashes, or a dataset of fewer rows, for which bands have a larger share to look at"
)


class Adviser(NamedTuple):
    """Prepares advice."""

    maps: Maps
    datasets: Datasets
    threads: int
    """How many it may use; the times that it measures are of so many."""

    def measurement(self, options: AdviceOptions) -> Measurement:
        """Advice on an index over a map, for rows like those of a dataset, ready to run.

        Raises:
            MapNotFound, MapNotReady, DatasetNotFound: what the options name is not there.
            InvalidInput: the map has no codes, or the dataset too few rows, or of another width.
        """
        subject = self.maps.open(options.map)
        feature_map = subject.feature_map
        given = self.datasets.gated({"vectors": Reference(options.dataset)}, feature_map.spec.gate)
        rows = given.rows["vectors"]
        with at_their_datasets(given.references):
            check(feature_map, int(rows.shape[0]), options.k)

        def run(progress: Progress) -> Finding[Advice]:
            with at_their_datasets(given.references):
                return advised(feature_map, rows, options, progress, self.threads)

        return Measurement(
            kind=ADVISE,
            subject={"map": options.map},
            options=options,
            given=given,
            digests={f"map {subject.name!r}": subject.digest, **dataset_digests(given.digests)},
            run=run,
            nbytes=advice_bytes(feature_map, rows, options.k),
            advice=_MEMORY_ADVICE,
            warnings=warnings_of(feature_map, given.rows),
        )
