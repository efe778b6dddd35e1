"""What is written for a job before the job is there."""

import secrets
from collections.abc import Mapping
from typing import Any

import orjson
import redis

from app.jobs import checkpoints
from app.jobs.checkpoints import Checkpoint
from app.jobs.prelude import key
from app.store import pieces
from app.store.errors import store_errors


class Draft:
    """A job that is to be submitted: fields of its record, and bytes that lie beside it.

    Args:
        job_id: of the job.
        kind: of the job.
        payload: anything JSON can hold.
        attachments: bytes, by name.
        checkpoint: what was done of the work before; left out if its state is too large to be kept.
    """

    def __init__(
        self,
        job_id: str,
        kind: str,
        payload: Mapping[str, Any],
        attachments: Mapping[str, bytes],
        checkpoint: Checkpoint | None,
    ) -> None:
        self.fields = {"kind": kind}
        prefixes = {name: key(job_id, f"attachment:{i}") for i, name in enumerate(attachments)}
        described = {name: (prefixes[name], len(data)) for name, data in attachments.items()}
        self._payload_key = key(job_id, "payload:0")
        self._payload = orjson.dumps({"payload": payload, "attachments": described})
        self._parts = {prefixes[name]: data for name, data in attachments.items()}
        if checkpoint is not None and len(checkpoint.state) <= checkpoints.MAX_CHECKPOINT_BYTES:
            prefix, state = key(job_id, f"checkpoint:{secrets.token_hex(4)}"), checkpoints.stored(checkpoint.state)
            self._parts[prefix] = state
            self.fields |= {"checkpoint": prefix, "checkpoint_pieces": str(pieces.count(len(state)))}
            self.fields |= checkpoint.progress if checkpoint.of else {}

    @property
    def keys(self) -> list[str]:
        """Of everything that lies beside the record."""
        return [
            self._payload_key,
            *(one for prefix, data in self._parts.items() for one in pieces.keys(prefix, len(data))),
        ]

    def write(self, client: redis.Redis) -> None:
        """Write it all with a time to live; StoreUnavailable."""
        with store_errors():
            client.set(self._payload_key, self._payload, ex=pieces.UNCOMMITTED_TTL)
        for prefix, data in self._parts.items():
            pieces.write(client, prefix, data)
