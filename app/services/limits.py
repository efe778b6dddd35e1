"""The limits of a request, and the refusals of what passes them."""

from typing import NamedTuple

from app.core.errors import TooLarge

# What a thing in a list of a spec counts as, however short it is written: models of it and their copies take up to 140.
_BYTES_PER_COMMA = 7


class Limits(NamedTuple):
    """The values of the settings of the same names.

    They are in bytes; `max_operations` in multiplications, `max_index_batch` in vectors.
    """

    max_body_bytes: int
    max_spec_bytes: int
    max_result_bytes: int
    max_map_bytes: int
    max_dataset_bytes: int
    max_operations: int
    max_build_bytes: int
    max_job_bytes: int
    max_index_batch: int

    def check_map(self, nbytes: int) -> None:
        """Raise TooLarge for a map whose arrays take more than `max_map_bytes`."""
        self._check("max_map_bytes", nbytes, self.max_map_bytes, "the map's arrays would take")

    def check_build(self, nbytes: int) -> None:
        """Raise TooLarge for a map whose building takes more memory than `max_job_bytes`."""
        self._check("max_job_bytes", nbytes, self.max_job_bytes, "building the map would take")

    def check_job(self, nbytes: int, advice: str = "") -> None:
        """Raise TooLarge for work of more memory than `max_job_bytes`; `advice` says what to ask for instead."""
        self._check("max_job_bytes", nbytes, self.max_job_bytes, "it would take", "bytes of memory", advice)

    def check_dataset(self, nbytes: int) -> None:
        """Raise TooLarge for a dataset whose arrays take more than `max_dataset_bytes`."""
        self._check("max_dataset_bytes", nbytes, self.max_dataset_bytes, "the dataset would take")

    def check_rows(self, nbytes: int) -> None:
        """Raise TooLarge for rows that take more in memory than those of a dataset may."""
        self._check("max_dataset_bytes", nbytes, self.max_dataset_bytes, "the rows would take", advice="send fewer")

    def check_result(self, nbytes: int) -> None:
        """Raise TooLarge for a result that takes more than `max_result_bytes`."""
        self._check("max_result_bytes", nbytes, self.max_result_bytes, "the result would take")

    def check_operations(self, operations: int, rows: int = 0) -> None:
        """Raise TooLarge for work of more multiplications than `max_operations`.

        Where each of `rows` takes as much of the work, the refusal says how many at a time would pass.
        """
        fitting = rows * self.max_operations // max(1, operations)
        unit = f"operations for {rows} rows, of which {fitting} at a time would pass" if fitting else "operations"
        self._check("max_operations", operations, self.max_operations, "the request takes", unit)

    def check_spec(self, nbytes: int, n_commas: int = 0, what: str = "the spec") -> None:
        """Raise TooLarge for a spec of more than `max_spec_bytes`, or of lists that count as more."""
        self._check("max_spec_bytes", nbytes, self.max_spec_bytes, f"{what} has")
        said = f"{what} has {n_commas} commas in lists, where each thing counts as {_BYTES_PER_COMMA} bytes at least:"
        self._check("max_spec_bytes", _BYTES_PER_COMMA * n_commas, self.max_spec_bytes, said)

    def check_options(self, nbytes: int, n_commas: int = 0) -> None:
        """Raise TooLarge for a request that says more than `max_spec_bytes` beside its rows, or counts as more."""
        self.check_spec(nbytes, n_commas, "beside its rows the request")

    def check_body(self, nbytes: int) -> None:
        """Raise TooLarge for a body that is longer than `max_body_bytes`."""
        self._check("max_body_bytes", nbytes, self.max_body_bytes, "the body has")

    def check_batch(self, n: int) -> None:
        """Raise TooLarge for more than `max_index_batch` vectors that are to be put into an index at once."""
        self._check("max_index_batch", n, self.max_index_batch, "the batch has", "vectors")

    def check_batch_bytes(self, nbytes: int) -> None:
        """Raise TooLarge for vectors that are to be kept at once and take more than `max_body_bytes` as they are."""
        self._check("max_body_bytes", nbytes, self.max_body_bytes, "the vectors of the batch take", advice="send fewer")

    @staticmethod
    def _check(limit: str, value: int, allowed: int, what: str, unit: str = "bytes", advice: str = "") -> None:
        if value > allowed:
            detail = f"{what} {value} {unit}; {limit} is {allowed}" + (f": {advice}" if advice else "")
            raise TooLarge(detail, limit=limit, allowed=allowed, value=value)
