"""Maps of the service in the process at hand, for work in bulk without HTTP."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from bochner_client.calls.maps import export_map
from bochner_client.exchange import exchange
from bochner_client.requests import Flow

if TYPE_CHECKING:
    import bochner


def local(name: str, *, threads: int = 0) -> Flow[bochner.Map]:
    """A map that computes here: features, kernels and codes of the service bit for bit, by its own code.

    Args:
        name: the map's name.
        threads: how many it may use; 0 for all processors. They change no result.

    Raises:
        ImportError: the package `bochner` is not there.
    """
    try:
        import bochner
    except ImportError as error:
        raise ImportError("maps in this process need the service's package: pip install . in its checkout") from error
    return bochner.load(io.BytesIO((yield from exchange(export_map(name, "npz")))), threads)
