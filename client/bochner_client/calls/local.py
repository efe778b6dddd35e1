"""Maps of the service that compute in this process, for bulk work without HTTP."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from bochner_client.calls.maps import export_map
from bochner_client.exchange import exchange
from bochner_client.requests import Flow

if TYPE_CHECKING:
    import bochner


def local(name: str, *, threads: int = 0) -> Flow[bochner.Map]:
    """Fetch a map that computes in this process, with the service's own code: results are the same, bit for bit.

    Args:
        name: name of the map.
        threads: number of threads that the map may use; 0 for all processors. It does not change results.

    Returns:
        The map, which computes features, kernels and codes.

    Raises:
        ImportError: the package `bochner` is not installed.
    """
    try:
        import bochner
    except ImportError as error:
        raise ImportError("maps in this process need the service's package: pip install . in its checkout") from error
    return bochner.load(io.BytesIO((yield from exchange(export_map(name, "npz")))), threads)
