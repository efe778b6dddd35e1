"""Limits of a request, and the errors for exceeding them."""

from typing import NamedTuple

from app.core.errors import TooLarge

# Bytes that an item of a list in a spec counts as, however short its text is: its models and their copies take up to
# 140 bytes.
_BYTES_PER_COMMA = 7


class Limits(NamedTuple):
    """Values of the settings with the same names.

    They are in bytes, except that `max_operations` is in multiplications and `max_index_batch` in vectors.
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

    def check_job(self, nbytes: int, advice: str = "", what: str = "it") -> None:
        """Raise TooLarge for work of more than `max_job_bytes` of memory; `advice` says what to request instead."""
        self._check("max_job_bytes", nbytes, self.max_job_bytes, f"{what} would take", "bytes of memory", advice)

    def check_dataset(self, nbytes: int) -> None:
        """Raise TooLarge for a dataset whose arrays take more than `max_dataset_bytes`."""
        self._check("max_dataset_bytes", nbytes, self.max_dataset_bytes, "the dataset would take")

    def check_rows(self, nbytes: int) -> None:
        """Raise TooLarge for rows that take more memory than `max_dataset_bytes`."""
        self._check("max_dataset_bytes", nbytes, self.max_dataset_bytes, "the rows would take", advice="send fewer")

    def check_result(self, nbytes: int) -> None:
        """Raise TooLarge for a result that takes more than `max_result_bytes`."""
        self._check("max_result_bytes", nbytes, self.max_result_bytes, "the result would take")

    def check_operations(self, operations: int, rows: int = 0) -> None:
        """Raise TooLarge for work of more multiplications than `max_operations`.

        If the work consists of equal parts for `rows` rows, the error says how many rows at a time would be accepted.
        """
        fitting = rows * self.max_operations // max(1, operations)
        unit = f"operations for {rows} rows, of which {fitting} at a time would pass" if fitting else "operations"
        self._check("max_operations", operations, self.max_operations, "the request takes", unit)

    def check_spec(self, nbytes: int, n_commas: int = 0, what: str = "the spec") -> None:
        """Raise TooLarge for a spec of more than `max_spec_bytes`, or whose lists have too many items for that."""
        self._check("max_spec_bytes", nbytes, self.max_spec_bytes, f"{what} has")
        said = f"{what} has {n_commas} commas in lists, where each thing counts as {_BYTES_PER_COMMA} bytes at least:"
        self._check("max_spec_bytes", _BYTES_PER_COMMA * n_commas, self.max_spec_bytes, said)

    def check_options(self, nbytes: int, n_commas: int = 0) -> None:
        """Raise TooLarge for a request with more than `max_spec_bytes` beside its rows, or too many items in lists."""
        self.check_spec(nbytes, n_commas, "beside its rows the request")

    def check_body(self, nbytes: int) -> None:
        """Raise TooLarge for a body that is longer than `max_body_bytes`."""
        self._check("max_body_bytes", nbytes, self.max_body_bytes, "the body has")

    def check_batch(self, n: int) -> None:
        """Raise TooLarge for a batch of more than `max_index_batch` vectors to put into an index."""
        self._check("max_index_batch", n, self.max_index_batch, "the batch has", "vectors")

    def check_batch_bytes(self, nbytes: int) -> None:
        """Raise TooLarge for a batch of vectors that takes more than `max_body_bytes` in the store."""
        self._check("max_body_bytes", nbytes, self.max_body_bytes, "the vectors of the batch take", advice="send fewer")

    @staticmethod
    def _check(limit: str, value: int, allowed: int, what: str, unit: str = "bytes", advice: str = "") -> None:
        if value > allowed:
            detail = f"{what} {value} {unit}; {limit} is {allowed}" + (f": {advice}" if advice else "")
            raise TooLarge(detail, limit=limit, allowed=allowed, value=value)
