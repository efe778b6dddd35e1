"""Hash codes of rows, as a transformer for scikit-learn."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from bochner_client.calls.vectors import BitsOf, Encoding, OnZero
from bochner_client.transformers.connections import Connection
from bochner_client.transformers.map_transformer import Array, MapTransformer
from bochner_client.transformers.rows import Block
from bochner_client.transformers.specs import Spec, kernel_of, sampler_of, seed_of, whole

_DEFAULT_BITS = 8


class HashMap(MapTransformer):
    """Codes of rows that agree as often as a kernel says: by default the min-max kernel, as sparse rows of ones.

    Args:
        s: number of hashes; for kernels other than gmm, number of frequencies, each of which has one bit.
        p: power of kernel gmm.
        center: for kernel gmm, a number for each column that is subtracted from rows first.
        kernel: "gmm", or a kernel with frequencies, such as "gaussian" or {"kind": "matern", "nu": 1.5}.
        sampler: for kernel gmm "gcws", the default, or "dart_minhash", for rows with hundreds of non-zero entries. For
            other kernels the sampler of their frequencies, as in `FeatureMap`, by default "halton".
        length_scale: length scale of a kernel with frequencies, as in `FeatureMap`.
        seed: seed of every random choice.
        encoding: for kernel gmm by default "one_hot", sparse rows (n, s·2^bits) for linear learners, with a one for
            each hash. "zero_bit", "b_bit" and "fingerprint" are codes (n, s), "packed" bytes (n, ⌈s·bits/8⌉), "pairs"
            columns (n, 2s). Other kernels have "packed" (n, ⌈s/8⌉), the default, and "fingerprint" (n,
            ⌊s/rows_per_band⌋).
        bits: bits of a code; None for the default of the encoding.
        bits_of: number from which codes take their bits: "index", "mixed_index" or "pair".
        rows_per_band: bits of a fingerprint, for kernels other than gmm; None for 16.
        on_zero: how rows that are all zero are handled: "refuse", or "mark", which gives them no ones, or codes of −1.
            None for "mark" with one_hot, whose other rows do not change by it, and "refuse" with all other encodings.
        input: preprocessing of rows; see `FeatureMap` for this and all arguments below.
        url: address of the service.
        key: key for the service.
        name: name of the map.
        ttl: seconds after its last use after which the service deletes the map.
        at_once: number of blocks of rows that are sent at a time.
        progress: whether to show a bar for the progress of long transforms.
    """

    def __init__(
        self,
        s: int = 512,
        *,
        p: float = 1.0,
        center: Sequence[float] | None = None,
        kernel: str | Mapping[str, Any] = "gmm",
        sampler: str | Mapping[str, Any] | None = None,
        length_scale: Any = None,
        seed: int | None = 0,
        encoding: Encoding | None = None,
        bits: int | None = None,
        bits_of: BitsOf | None = None,
        rows_per_band: int | None = None,
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
        self.p = p
        self.center = center
        self.kernel = kernel
        self.sampler = sampler
        self.length_scale = length_scale
        self.seed = seed
        self.encoding = encoding
        self.bits = bits
        self.bits_of = bits_of
        self.rows_per_band = rows_per_band
        self.on_zero = on_zero
        self.input = input
        self.url = url
        self.key = key
        self.name = name
        self.ttl = ttl
        self.at_once = at_once
        self.progress = progress

    def _asked(self, service: Connection) -> Spec:
        kinds = service.catalog
        sampler = self.sampler or ("gcws" if self._is_gmm else "halton")
        of_all: Spec = {
            "sampler": sampler_of(sampler, kinds["samplers"]),
            "s": whole(self.s),
            "seed": seed_of(self.seed),
        }
        if not self._is_gmm:
            if self.p != 1 or self.center is not None:
                raise ValueError(f"p={self.p!r}, center={self.center!r} came; they are for kernel gmm")
            return {"kernel": kernel_of(self.kernel, self.length_scale, kinds["kernels"]), **of_all}
        if self.length_scale is not None:
            raise ValueError(f"length_scale={self.length_scale!r} came; it is for kernels with frequencies")
        gmm: Spec = {"p": float(self.p)} | ({} if isinstance(self.kernel, str) else dict(self.kernel)) | {"kind": "gmm"}
        if self.center is not None:
            gmm["center"] = np.asarray(self.center, np.float64).tolist()
        return {"kernel": gmm, **of_all}

    def _post(self, service: Connection, rows: Block, out: Array | None) -> Array:
        return service.client.codes(
            self.name_,
            rows,
            self._encoding,
            bits=self.bits,
            bits_of=self.bits_of,
            rows_per_band=self.rows_per_band,
            on_zero=self.on_zero or ("mark" if self._encoding == "one_hot" else "refuse"),
            out=out,
        )

    def _columns(self) -> int:
        return int(self.s) * self._codes_of_a_hash if self._encoding == "one_hot" else super()._columns()

    def _target(self, n: int, out: Array | None) -> Array:
        if out is not None and self._encoding == "one_hot":
            raise ValueError("out came; rows of encoding one_hot are sparse, and written into no array")
        return super()._target(n, out)

    def _given(self, target: Array) -> Any:
        if self._encoding != "one_hot":
            return super()._given(target)
        kept = target >= 0  # rows that are all zero have no ones
        columns = target.reshape(-1) if kept.all() else target[kept]
        # Many learners do not accept wider indices than they need.
        index = np.int32 if max(len(columns), self._columns()) <= np.iinfo(np.int32).max else np.int64
        ends = np.concatenate([[0], np.cumsum(np.count_nonzero(kept, axis=1))]).astype(index)
        parts = np.ones(len(columns), np.float32), columns.astype(index, copy=False), ends
        return sparse.csr_array(parts, shape=(len(target), self._columns()))

    @property
    def _is_gmm(self) -> bool:
        return (self.kernel if isinstance(self.kernel, str) else self.kernel.get("kind")) == "gmm"

    @property
    def _encoding(self) -> Encoding:
        return self.encoding or ("one_hot" if self._is_gmm else "packed")

    @property
    def _codes_of_a_hash(self) -> int:
        return 1 << (_DEFAULT_BITS if self.bits is None else int(self.bits))
