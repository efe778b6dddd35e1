"""What a map is worth: diagnostics, checked and ready to run."""

from app.core.diagnostics import Diagnostic
from app.services.datasets import GatedRows, dataset_digests
from app.services.limits import Limits
from app.services.maps import OpenMap
from app.services.measurements import DIAGNOSE, Measurement


class Diagnostics:
    """Prepares diagnostics.

    Args:
        limits: of a request.
        threads: how many a diagnostic may use.
    """

    def __init__(self, limits: Limits, threads: int) -> None:
        self._limits = limits
        self._threads = threads

    def measurement(self, subject: OpenMap, diagnostic: Diagnostic, given: GatedRows) -> Measurement:
        """A diagnostic of a map, ready to run.

        Args:
            subject: the map.
            diagnostic: with its options.
            given: rows behind the gate of the map.

        Raises:
            InvalidInput: it can be seen at once that there is no answer.
            TooLarge: the rows that it makes itself take more memory than a request may.
        """
        feature_map, rows = subject.feature_map, given.rows
        diagnostic.check(feature_map, rows)
        self._limits.check_result(diagnostic.made_rows_bytes(feature_map))
        return Measurement(
            kind=DIAGNOSE,
            subject={"map": subject.name, "diagnostic": diagnostic.kind},
            options=diagnostic,
            given=given,
            digests={f"map {subject.name!r}": subject.digest, **dataset_digests(given.digests)},
            run=lambda progress: diagnostic.run(feature_map, rows, progress, self._threads),
            nbytes=diagnostic.memory_bytes(feature_map, rows),
        )
