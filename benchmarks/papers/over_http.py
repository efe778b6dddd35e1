"""The service as the experiments use it: maps, features, codes, kernels and diagnostics, all over HTTP."""

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Rows
from service_tests.checks import NPY, npy
from service_tests.running import service

_LARGE = str(8 << 30)
_OPTIONS = {
    "--log-level": "warning",
    "--job-workers": "1",
    "--max-wait-seconds": "3600",
    "--max-operations": str(10**15),
    "--max-body-bytes": _LARGE,
    "--max-result-bytes": _LARGE,
    "--max-dataset-bytes": _LARGE,
    "--max-map-bytes": _LARGE,
}
"""Of a service for one patient client: no limit is in the way."""
_WAIT = 3600
_numbers = count()


class Map:
    """A map that the service holds.

    Args:
        client: of the service.
        record: of the map.
    """

    def __init__(self, client: httpx.Client, record: dict[str, Any]) -> None:
        self._client, self.record = client, record
        self._path = f"/v1/maps/{record['name']}"

    def transform(self, rows: Rows) -> NDArray[Any]:
        """Features, (n, n_output)."""
        return _array(self._posted("/transform", npy(rows)))

    def codes(self, rows: Rows, bits: int, bits_of: str = "index") -> NDArray[Any]:
        """Columns of ones in the one-hot expansion, (n, s)."""
        return _array(self._posted(f"/codes?encoding=one_hot&bits={bits}&bits_of={bits_of}", npy(rows)))

    def kernel(self, x: str, y: str | None = None) -> NDArray[Any]:
        """The approximate block of two datasets, or of one with itself, and the exact one, (2, n, m)."""
        body = {"x": {"dataset": x}} | ({} if y is None else {"y": {"dataset": y}})
        answer = self._client.post(f"{self._path}/kernel?exact=true", json=body, headers={"Accept": NPY})
        return _array(answer)

    def frequencies(self) -> NDArray[Any]:
        """The frozen frequencies, (s, d)."""
        return _array(self._client.get(f"{self._path}/frequencies", headers={"Accept": NPY}))

    def diagnostic(self, kind: str, **body: Any) -> Any:
        """What a diagnostic answers."""
        return _checked(self._client.post(f"{self._path}/diagnostics/{kind}", json=body)).json()

    def _posted(self, path: str, body: bytes) -> httpx.Response:
        return self._client.post(self._path + path, content=body, headers={"Content-Type": NPY})


class Service:
    """A running service.

    Args:
        client: of it, that waits for answers.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._held: set[str] = set()
        self._sending = Lock()

    @contextmanager
    def map(self, **spec: Any) -> Iterator[Map]:
        """A map of this spec, for the length of a with block."""
        name = f"paper-{next(_numbers)}"
        answer = _checked(self._client.put(f"/v1/maps/{name}", json=spec))
        if answer.status_code == 202:
            raise RuntimeError(f"the service did not wait for its map: {answer.text}")
        try:
            yield Map(self._client, self._client.get(f"/v1/maps/{name}").json())
        finally:
            _checked(self._client.delete(f"/v1/maps/{name}"))

    def dataset(self, name: str, rows: Rows) -> str:
        """The name under which the service holds these rows; they are sent the first time only."""
        with self._sending:
            if name not in self._held:
                headers = {"Content-Type": NPY}
                _checked(self._client.put(f"/v1/datasets/{name}", content=npy(rows), headers=headers))
                self._held.add(name)
        return name


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_error:
        raise RuntimeError(f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text[:500]}")
    return answer


def _array(answer: httpx.Response) -> NDArray[Any]:
    numbers: NDArray[Any] = np.load(io.BytesIO(_checked(answer).content))
    return numbers


@contextmanager
def own_service() -> Iterator[Service]:
    """A service of one's own, in a process and a folder that are gone at the end, even if this process is killed."""
    options = [part for option in _OPTIONS.items() for part in option]
    folder = Path(tempfile.mkdtemp(prefix="papers-"))
    with (
        service(folder / "data", *options, program="benchmarks.papers.attached") as running,
        httpx.Client(base_url=running.url, timeout=_WAIT, headers={"Prefer": f"wait={_WAIT}"}) as client,
    ):
        yield Service(client)
