"""Work of `fit` at the service: it resolves the fields of a spec that depend on rows, and creates the map."""

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bochner_client.errors import BochnerWarning
from bochner_client.records import MapRecord
from bochner_client.refusals import DatasetNotFound, InvalidInput
from bochner_client.transformers.blocks import BODY_HEAD_BYTES
from bochner_client.transformers.connections import Connection
from bochner_client.transformers.rows import Block, Rows
from bochner_client.transformers.specs import Spec, named, named_rows, probe, settled

# How long datasets and probe maps live, which are needed only to build a map; less if the map itself lives shorter.
_PASSING_SECONDS = 3600
# Share of the largest possible dataset that is drawn, as the number of rows drawn is random.
_SHARE = 0.95
_SEED = 0


def put(
    service: Connection, name: str, spec: Spec, rows: Block | None, ttl: int | None, progress: bool = False
) -> MapRecord:
    """Create the map of this name and spec, and return its record once it is ready.

    `rows` are the rows of the dataset that the map is made from, if any. They are sent only if the service has neither
    the map nor the dataset.
    """
    client = service.client
    try:
        return client.put_map(name, spec, ttl=ttl, progress=progress)
    except (DatasetNotFound, InvalidInput) as error:
        if rows is None or not _lacks_dataset(error):
            raise
    client.put_dataset(named_rows(rows), rows, ttl=_passing(ttl))
    return client.put_map(name, spec, ttl=ttl, progress=progress)


def with_numbers(service: Connection, spec: Spec, rows: Block | None, ttl: int | None) -> Spec:
    """Return the spec with its row-dependent fields resolved to the numbers in the record of a probe map."""
    least = probe(spec)
    record = put(service, named(least), least, rows, _passing(ttl))
    for doubt in record.warnings:
        warnings.warn(doubt, BochnerWarning, stacklevel=4)
    return settled(spec, record.spec)


def as_dataset(rows: Rows, limits: Mapping[str, float]) -> Block:
    """Return rows that the service accepts as a dataset: all of them, or a random sample."""
    most = int(min(limits["max_body_bytes"] - BODY_HEAD_BYTES, limits["max_dataset_bytes"]))
    share = 1.0 if rows.nbytes <= most else _SHARE * most / rows.nbytes
    rng = np.random.default_rng(_SEED)
    pieces: list[Any] = []
    for block in rows.blocks():
        taken: NDArray[np.bool_] = np.asarray(rng.random(block.shape[0]) < share)
        pieces.append(block[np.flatnonzero(taken)])
    stack: Any = np.concatenate if rows.bytes_before is None else partial(sparse.vstack, format="csr")
    found: Block = stack(pieces)
    if share < 1:
        warnings.warn(
            f"{rows.n} rows are more than the service takes as a dataset: {found.shape[0]} of them, drawn at random, "
            "stand for all where the map is made from rows",
            stacklevel=4,
        )
    return found


def _passing(ttl: int | None) -> int:
    """Return the lifetime, in seconds, of things that are needed only to build a map of this `ttl`."""
    return _PASSING_SECONDS if ttl is None else min(ttl, _PASSING_SECONDS)


def _lacks_dataset(error: DatasetNotFound | InvalidInput) -> bool:
    return isinstance(error, DatasetNotFound) or any(
        one.get("pointer", "").endswith("/dataset") for one in error.errors
    )
