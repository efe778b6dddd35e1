"""Hash codes of rows, as a transformer of scikit-learn."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import sparse

from bochner_client.calls.vectors import BitsOf, Encoding, OnZero
from bochner_client.transformers.connections import Connection
from bochner_client.transformers.map_transformer import Array, MapTransformer
from bochner_client.transformers.rows import Block
from bochner_client.transformers.specs import Spec, seed_of, whole

_DEFAULT_BITS = 8


class HashMap(MapTransformer):
    """Codes of rows that collide as often as their min-max kernel says; by default as sparse rows of ones.

    Args:
        s: number of hashes.
        sampler: "gcws", or "dart_minhash" for rows of hundreds of entries that are not zero.
        p: power of the kernel.
        center: subtracted from each row first, one number for each column.
        seed: of every random choice.
        encoding: "one_hot" gives sparse rows (n, s·2^bits) for linear learners, with a one for each hash. "zero_bit",
            "b_bit" and "fingerprint" give codes (n, s), "packed" bytes (n, ⌈s·bits/8⌉), "pairs" columns (n, 2s).
        bits: of a code; None for those of the encoding.
        bits_of: what they are taken from: "index", "mixed_index" or "pair".
        on_zero: what becomes of rows that are all zero: "refuse", or "mark", which gives them no ones, or codes of −1.
            None is "mark" for one_hot, which stays what it is for all other rows, and "refuse" for all other encodings.
        input: what is done to rows first; see `FeatureMap`, as for all that follow.
        url: address of the service.
        key: to ask it with.
        name: of the map.
        ttl: seconds after its last use after which the service deletes the map.
        at_once: blocks of rows that are sent at a time.
        progress: whether a bar shows how far long transforms are.
    """

    def __init__(
        self,
        s: int = 512,
        *,
        sampler: Literal["gcws", "dart_minhash"] = "gcws",
        p: float = 1.0,
        center: Sequence[float] | None = None,
        seed: int | None = 0,
        encoding: Encoding = "one_hot",
        bits: int | None = None,
        bits_of: BitsOf | None = None,
        on_zero: OnZero | None = None,
        input: Any = None,  # noqa: A002  # the word of the contract
        url: str | None = None,
        key: str | None = None,
        name: str | None = None,
        ttl: int | None = 3600,
        at_once: int = 4,
        progress: bool = False,
    ) -> None:
        self.s = s
        self.sampler = sampler
        self.p = p
        self.center = center
        self.seed = seed
        self.encoding = encoding
        self.bits = bits
        self.bits_of = bits_of
        self.on_zero = on_zero
        self.input = input
        self.url = url
        self.key = key
        self.name = name
        self.ttl = ttl
        self.at_once = at_once
        self.progress = progress

    def _asked(self, service: Connection) -> Spec:
        del service
        kernel: Spec = {"kind": "gmm", "p": float(self.p)}
        if self.center is not None:
            kernel["center"] = np.asarray(self.center, np.float64).tolist()
        return {"kernel": kernel, "sampler": {"kind": self.sampler}, "s": whole(self.s), "seed": seed_of(self.seed)}

    def _post(self, service: Connection, rows: Block, out: Array | None) -> Array:
        on_zero: OnZero = self.on_zero or ("mark" if self.encoding == "one_hot" else "refuse")
        return service.client.codes(
            self.name_, rows, self.encoding, bits=self.bits, bits_of=self.bits_of, on_zero=on_zero, out=out
        )

    def _columns(self) -> int:
        return int(self.s) * self._codes_of_a_hash if self.encoding == "one_hot" else super()._columns()

    def _target(self, n: int, out: Array | None) -> Array:
        if out is not None and self.encoding == "one_hot":
            raise ValueError("out came; rows of encoding one_hot are sparse, and written into no array")
        return super()._target(n, out)

    def _given(self, target: Array) -> Any:
        if self.encoding != "one_hot":
            return super()._given(target)
        kept = target >= 0  # of rows that are all zero nothing is
        columns = target.reshape(-1) if kept.all() else target[kept]
        # Many learners take no wider indices than they need.
        index = np.int32 if max(len(columns), self._columns()) <= np.iinfo(np.int32).max else np.int64
        ends = np.concatenate([[0], np.cumsum(np.count_nonzero(kept, axis=1))]).astype(index)
        parts = np.ones(len(columns), np.float32), columns.astype(index, copy=False), ends
        return sparse.csr_array(parts, shape=(len(target), self._columns()))

    @property
    def _codes_of_a_hash(self) -> int:
        return 1 << (_DEFAULT_BITS if self.bits is None else int(self.bits))
