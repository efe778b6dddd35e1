"""The limits of a request, and the refusals of what passes them."""

from typing import NamedTuple

from app.core.errors import TooLarge


class Limits(NamedTuple):
    """The values of the settings of the same names, in bytes; `max_operations` in multiplications."""

    max_body_bytes: int
    max_spec_bytes: int
    max_result_bytes: int
    max_map_bytes: int
    max_dataset_bytes: int
    max_operations: int
    max_build_bytes: int
    max_job_bytes: int

    def check_map(self, nbytes: int) -> None:
        """Raise TooLarge for a map whose arrays take more than `max_map_bytes`."""
        self._check("max_map_bytes", nbytes, self.max_map_bytes, "the map's arrays would take")

    def check_build(self, nbytes: int) -> None:
        """Raise TooLarge for a map whose building takes more memory than `max_job_bytes`."""
        self._check("max_job_bytes", nbytes, self.max_job_bytes, "building the map would take")

    def check_dataset(self, nbytes: int) -> None:
        """Raise TooLarge for a dataset whose arrays take more than `max_dataset_bytes`."""
        self._check("max_dataset_bytes", nbytes, self.max_dataset_bytes, "the dataset would take")

    def check_result(self, nbytes: int) -> None:
        """Raise TooLarge for a result that takes more than `max_result_bytes`."""
        self._check("max_result_bytes", nbytes, self.max_result_bytes, "the result would take")

    def check_operations(self, operations: int) -> None:
        """Raise TooLarge for work of more multiplications than `max_operations`."""
        self._check("max_operations", operations, self.max_operations, "the request takes", "operations")

    def check_spec(self, nbytes: int) -> None:
        """Raise TooLarge for the body of a spec that is longer than `max_spec_bytes`."""
        self._check("max_spec_bytes", nbytes, self.max_spec_bytes, "the spec has")

    def check_options(self, nbytes: int) -> None:
        """Raise TooLarge for a request that says more than `max_spec_bytes` beside its rows."""
        self._check("max_spec_bytes", nbytes, self.max_spec_bytes, "beside its rows the request has")

    def check_body(self, nbytes: int) -> None:
        """Raise TooLarge for a body that is longer than `max_body_bytes`."""
        self._check("max_body_bytes", nbytes, self.max_body_bytes, "the body has")

    @staticmethod
    def _check(limit: str, value: int, allowed: int, what: str, unit: str = "bytes") -> None:
        if value > allowed:
            detail = f"{what} {value} {unit}; {limit} is {allowed}"
            raise TooLarge(detail, limit=limit, allowed=allowed, value=value)
