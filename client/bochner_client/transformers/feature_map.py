"""Kernel features of rows, as a transformer for scikit-learn."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from bochner_client.transformers.connections import Connection
from bochner_client.transformers.map_transformer import Array, MapTransformer
from bochner_client.transformers.rows import Block
from bochner_client.transformers.specs import Spec, kernel_of, sampler_of, seed_of, whole


class FeatureMap(MapTransformer):
    """Features of rows whose inner products approximate a kernel.

    Args:
        kernel: kind of kernel, such as "gaussian", or kind and options: {"kind": "matern", "nu": 1.5}.
        sampler: kind of sampler of frequencies or landmarks, or kind and options: "halton", "landmarks", {"kind":
            "weighted", "differences": "data"}. Samplers that learn do so from the rows passed to `fit`.
        s: number of frequencies or landmarks; None if the sampler determines it.
        length_scale: a number, one for each column, or a rule to compute it from the rows of `fit`: "median",
            "nearest_neighbor", {"per_column": "median"}. None for the kernel's own if it has one, else "median".
        seed: seed of every random choice; None to draw one at each `fit` (see `spec_`).
        form: form of the features: "cos_sin" (2s columns), "phase" (s columns) or "complex".
        normalize: whether to scale rows of features to unit length.
        dtype: dtype of the features: "float16", "float32" or "float64"; for "float64", they are computed in it too. For
            the form "complex", the dtype of the real and imaginary parts.
        input: preprocessing of rows: "standardize", "min_max", "robust", "max_abs", fitted to the rows of `fit`; or
            members of `input` of a spec, such as {"fit": "standardize", "missing": 0}.
        url: address of the service; None for the default of `Client`.
        key: key for the service; None for the default of `Client`. It is included when the estimator is pickled.
        name: name of the map; None for a name derived from its spec.
        ttl: seconds after its last use after which the service deletes the map; None for never.
        at_once: number of blocks of rows that are sent at a time.
        progress: whether to show bars for the progress of jobs and long transforms.
    """

    def __init__(
        self,
        kernel: str | Mapping[str, Any] = "gaussian",
        sampler: str | Mapping[str, Any] = "halton",
        s: int | None = 512,
        *,
        length_scale: Any = None,
        seed: int | None = 0,
        form: Literal["cos_sin", "phase", "complex"] = "cos_sin",
        normalize: bool = False,
        dtype: Literal["float16", "float32", "float64"] = "float32",
        input: Any = None,  # noqa: A002  # the word of the contract
        url: str | None = None,
        key: str | None = None,
        name: str | None = None,
        ttl: int | None = 3600,
        at_once: int = 4,
        progress: bool = False,
    ) -> None:
        self.kernel = kernel
        self.sampler = sampler
        self.s = s
        self.length_scale = length_scale
        self.seed = seed
        self.form = form
        self.normalize = normalize
        self.dtype = dtype
        self.input = input
        self.url = url
        self.key = key
        self.name = name
        self.ttl = ttl
        self.at_once = at_once
        self.progress = progress

    def _asked(self, service: Connection) -> Spec:
        kinds = service.catalog
        spec: Spec = {
            "kernel": kernel_of(self.kernel, self.length_scale, kinds["kernels"]),
            "sampler": sampler_of(self.sampler, kinds["samplers"]),
            "seed": seed_of(self.seed),
            "form": self.form,
            "normalize": bool(self.normalize),
            "dtype": "float64" if self._answered() == np.float64 else "float32",
        }
        return spec if self.s is None else {**spec, "s": whole(self.s)}

    def _post(self, service: Connection, rows: Block, out: Array | None) -> Array:
        dtype: Any = self._answered()
        if self.form == "complex":
            dtype = np.result_type(dtype, np.complex64)
        return service.client.transform(self.name_, rows, dtype=dtype, out=out)

    def _answered(self) -> np.dtype[Any]:
        """Return the dtype of the features; for the form complex, that of each part."""
        dtype = np.dtype(self.dtype)
        wanted = ("float32", "float64") if self.form == "complex" else ("float16", "float32", "float64")
        if dtype.name not in wanted:
            raise ValueError(f"dtype={self.dtype!r} came with form={self.form!r}; {' or '.join(wanted)} is wanted")
        return dtype
