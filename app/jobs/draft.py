"""A job that is about to be submitted: the fields of its record, and what is stored beside it."""

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from app.jobs import checkpoints
from app.jobs.checkpoints import Checkpoint
from app.jobs.prelude import key
from app.store import pieces
from app.store.account import Entry
from app.store.places import ONE, Places


class Draft(NamedTuple):
    """A job that is about to be submitted."""

    job_id: str
    fields: dict[str, str]
    """Those of its record."""
    record: str
    """Key of its record."""
    parts: dict[str, bytes]
    """What is stored beside the record, by what its keys begin with."""

    @property
    def entries(self) -> list[Entry]:
        """Its entries in the account of the store: the record, and each part with its size."""
        return [Entry(self.record, 0, 1), *(Entry(prefix, len(data)) for prefix, data in self.parts.items())]

    @property
    def pieces(self) -> list[str]:
        """The keys of all parts."""
        return [one for prefix, data in self.parts.items() for one in pieces.keys(prefix, len(data))]


def drafted(
    job_id: str,
    payload: Mapping[str, Any],
    attachments: Mapping[str, bytes],
    checkpoint: Checkpoint | None,
    said: Mapping[str, str],
    places: Places = ONE,
) -> Draft:
    """A job of this payload, with further fields, in a store of such places.

    A state that is too large to be kept is left out.
    """
    parts = {key(job_id, f"attachment:{i}", places): data for i, data in enumerate(attachments.values())}
    described = {name: (prefix, len(data)) for name, (prefix, data) in zip(attachments, parts.items(), strict=True)}
    packed = orjson.dumps({"payload": payload, "attachments": described})
    parts[key(job_id, "payload", places)] = packed
    fields = {"payload_pieces": str(pieces.count(len(packed))), **said}
    if checkpoint is not None and len(checkpoint.state) <= checkpoints.MAX_CHECKPOINT_BYTES:
        prefix, state = key(job_id, f"checkpoint:{secrets.token_hex(4)}", places), checkpoints.stored(checkpoint.state)
        parts[prefix] = state
        fields |= {"checkpoint": prefix, "checkpoint_pieces": str(pieces.count(len(state)))}
        if checkpoint.of:
            fields |= checkpoints.progress(checkpoint.step, checkpoint.of, checkpoint.objective)
    return Draft(job_id, fields, key(job_id, "record", places), parts)
