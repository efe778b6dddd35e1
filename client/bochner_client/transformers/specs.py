"""Specs of maps from the arguments of transformers, and what in them is left to rows."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np

from bochner_client.transformers.rows import Block

Spec = dict[str, Any]

_ROWS = ""
"""Stands for the dataset of the rows of `fit`: no dataset has such a name."""
_PARTS = ("kernel", "sampler", "input")
_SCALES = frozenset({"length_scale", "sigma", "gamma"})
# How many rows a way to take a length scale wants.
_LEAST_ROWS = {"nearest_neighbor": 11, "median": 2}
_LETTERS = 40


def kernel_of(asked: str | Mapping[str, Any], length_scale: Any, kinds: Mapping[str, Any]) -> Spec:
    """A kernel by its kind or with options, with the length scale that is given; else its own, or the median.

    Raises:
        ValueError: it has a length scale of its own, and one is given.
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
    """A sampler by its kind or with options; it learns from rows if it can, and is told neither of others nor a box."""
    sampler = _part(asked)
    fields = kinds.get(sampler.get("kind", ""), {}).get("properties", {})
    learns = "dataset" in fields and (sampler.get("learn", False) or "learn" not in fields)
    return {"dataset": _ROWS, **sampler} if learns and sampler.get("box") is None else sampler


def input_of(asked: str | Mapping[str, Any]) -> Spec:
    """What is done to rows first, by the name of a fit or with options."""
    wanted = {"fit": asked} if isinstance(asked, str) else _plain(asked)
    return {"dataset": _ROWS, **wanted} if "fit" in wanted else wanted


def whole(value: Any) -> Any:
    """A number as a whole one if it is one; all else as it is, which the service then refuses."""
    plain = _plain(value)
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def seed_of(asked: Any) -> Any:
    """A seed, drawn if none is asked for: the map is made anew from the same one should it expire."""
    return secrets.randbelow(1 << 32) if asked is None else whole(asked)


def is_of_rows(spec: Spec) -> bool:
    """Whether the rows of `fit` have a part in the map."""
    return any(spec.get(part, {}).get("dataset") == _ROWS for part in _PARTS)


def learns(spec: Spec) -> bool:
    """Whether the sampler takes the rows of `fit`."""
    return bool(spec["sampler"].get("dataset") == _ROWS)


def of_dataset(spec: Spec, dataset: str) -> Spec:
    """The spec with the name of a dataset in the place of the rows of `fit`."""
    changed = {
        part: {**spec[part], "dataset": dataset} for part in _PARTS if spec.get(part, {}).get("dataset") == _ROWS
    }
    return {**spec, **changed}


def is_open(spec: Spec) -> bool:
    """Whether numbers of the spec are left to rows."""
    return _scale_is_open(spec) or "fit" in spec.get("input", {})


def least_rows(spec: Spec) -> int:
    """How many rows it takes to find these numbers."""
    scale = spec["kernel"].get("length_scale")
    return _LEAST_ROWS.get(str(scale.get("per_column") if isinstance(scale, dict) else scale), 1)


def probe(spec: Spec) -> Spec:
    """The least map whose record tells the numbers that the spec leaves open."""
    kernel = spec["kernel"] if _scale_is_open(spec) else {"kind": "gaussian", "length_scale": 1.0}
    least = {"input_dim": spec["input_dim"], "kernel": kernel, "sampler": {"kind": "monte_carlo"}, "s": 1}
    return least | ({"input": spec["input"]} if "input" in spec else {})


def settled(spec: Spec, of_probe: Spec) -> Spec:
    """The spec with the numbers of the record of its probe."""
    kernel = {name: value for name, value in spec["kernel"].items() if name != "dataset"}
    if _scale_is_open(spec):
        kernel["length_scale"] = of_probe["kernel"]["length_scale"]
    return {**spec, "kernel": kernel} | ({"input": of_probe["input"]} if "input" in spec else {})


def named(spec: Spec) -> str:
    """A name for the map of a spec, the same for equal specs."""
    return _name(hashlib.sha256(json.dumps(spec, sort_keys=True).encode()))


def named_rows(rows: Block) -> str:
    """A name for a dataset of rows, the same for equal rows of one dtype."""
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
    """The value as JSON has it: arrays as lists, numbers of NumPy as those of Python."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        return np.asarray(value).tolist()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _scale_is_open(spec: Spec) -> bool:
    return isinstance(spec["kernel"].get("length_scale"), str | dict)
