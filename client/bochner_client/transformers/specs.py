"""Specs of maps, from the arguments of transformers; and which fields of a spec depend on rows."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np

from bochner_client.transformers.rows import Block

Spec = dict[str, Any]

_ROWS = ""
"""Placeholder for the name of the dataset of the rows of `fit`; not a valid name."""
_PARTS = ("kernel", "sampler", "input")
_SCALES = frozenset({"length_scale", "sigma", "gamma"})
# Number of rows that a rule for the length scale needs.
_LEAST_ROWS = {"nearest_neighbor": 11, "median": 2}
_LETTERS = 40


def kernel_of(asked: str | Mapping[str, Any], length_scale: Any, kinds: Mapping[str, Any]) -> Spec:
    """Return a kernel with a length scale: the argument, else the kernel's own, else the median.

    Raises:
        ValueError: the argument is given although the kernel has a length scale of its own.
    """
    kernel = _part(asked)
    own = sorted(_SCALES & set(kernel))
    if length_scale is not None:
        if own:
            raise ValueError(f"length_scale={length_scale!r} came, and the kernel has {' and '.join(own)} already")
        kernel["length_scale"] = _plain(length_scale)
    elif not own and "length_scale" in kinds.get(kernel.get("kind", ""), {}).get("properties", {}):
        kernel["length_scale"] = "median"
    scale = kernel.get("length_scale")
    named = isinstance(scale, dict) and "dataset" in scale
    return {"dataset": _ROWS, **kernel} if isinstance(scale, str | dict) and not named else kernel


def sampler_of(asked: str | Mapping[str, Any], kinds: Mapping[str, Any]) -> Spec:
    """Return a sampler. If it can learn from rows, it does so from those of `fit`, unless it has a dataset or a box."""
    sampler = _part(asked)
    fields = kinds.get(sampler.get("kind", ""), {}).get("properties", {})
    learns = "dataset" in fields and (sampler.get("learn", False) or "learn" not in fields)
    return {"dataset": _ROWS, **sampler} if learns and sampler.get("box") is None else sampler


def input_of(asked: str | Mapping[str, Any]) -> Spec:
    """Return the preprocessing (`input`) given the name of a fit, or options."""
    wanted = {"fit": asked} if isinstance(asked, str) else _plain(asked)
    return {"dataset": _ROWS, **wanted} if "fit" in wanted else wanted


def whole(value: Any) -> Any:
    """Return an integral float as an int; other values unchanged, for the service to refuse."""
    plain = _plain(value)
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def seed_of(asked: Any) -> Any:
    """Return the seed; if it is None, draw one, so that the same map can be built again after it has expired."""
    return secrets.randbelow(1 << 32) if asked is None else whole(asked)


def is_of_rows(spec: Spec) -> bool:
    """Whether the map depends on the rows of `fit`."""
    return any(spec.get(part, {}).get("dataset") == _ROWS for part in _PARTS)


def learns(spec: Spec) -> bool:
    """Whether the sampler learns from the rows of `fit`."""
    return bool(spec["sampler"].get("dataset") == _ROWS)


def of_dataset(spec: Spec, dataset: str) -> Spec:
    """Return the spec with the name of a dataset in place of the placeholder for the rows of `fit`."""
    changed = {
        part: {**spec[part], "dataset": dataset} for part in _PARTS if spec.get(part, {}).get("dataset") == _ROWS
    }
    return {**spec, **changed}


def is_open(spec: Spec) -> bool:
    """Whether fields of the spec have to be computed from rows."""
    return _scale_is_open(spec) or "fit" in spec.get("input", {})


def least_rows(spec: Spec) -> int:
    """Return the number of rows needed to compute the length scale."""
    scale = spec["kernel"].get("length_scale")
    return _LEAST_ROWS.get(str(scale.get("per_column") if isinstance(scale, dict) else scale), 1)


def probe(spec: Spec) -> Spec:
    """Return the spec of the smallest map whose record has the numbers that the spec lacks."""
    kernel = spec["kernel"] if _scale_is_open(spec) else {"kind": "gaussian", "length_scale": 1.0}
    # A kernel of subsets needs a frequency for each; how many windows an image has, the service knows.
    s = (spec.get("s") or len(spec["kernel"].get("subsets", "1"))) if kernel["kind"] == "anova" else 1
    least = {"input_dim": spec["input_dim"], "kernel": kernel, "sampler": {"kind": "monte_carlo"}, "s": s}
    return least | ({"input": spec["input"]} if "input" in spec else {})


def settled(spec: Spec, of_probe: Spec) -> Spec:
    """Return the spec with the numbers from the record of its probe map."""
    kernel = {name: value for name, value in spec["kernel"].items() if name != "dataset"}
    if _scale_is_open(spec):
        kernel["length_scale"] = of_probe["kernel"]["length_scale"]
    return {**spec, "kernel": kernel} | ({"input": of_probe["input"]} if "input" in spec else {})


def named(spec: Spec) -> str:
    """Return a name for the map of a spec; equal specs have the same name."""
    return _name(hashlib.sha256(json.dumps(spec, sort_keys=True).encode()))


def named_rows(rows: Block) -> str:
    """Return a name for a dataset of rows; equal rows of the same dtype have the same name."""
    parts = [rows] if isinstance(rows, np.ndarray) else [rows.data, rows.indices, rows.indptr]
    digest = hashlib.sha256(f"{[part.dtype.str for part in parts]} {rows.shape}".encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return _name(digest)


def _name(digest: Any) -> str:
    return f"sklearn-{digest.hexdigest()[:_LETTERS]}"


def _part(asked: str | Mapping[str, Any]) -> Spec:
    part: Spec = {"kind": asked} if isinstance(asked, str) else _plain(asked)
    return part


def _plain(value: Any) -> Any:
    """Return the value as JSON: arrays become lists, NumPy numbers those of Python."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        return np.asarray(value).tolist()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _scale_is_open(spec: Spec) -> bool:
    return isinstance(spec["kernel"].get("length_scale"), str | dict)
