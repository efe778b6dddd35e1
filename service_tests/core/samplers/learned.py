"""Builds of samplers that learn: small ones of each, on the cpu data, interrupted and resumed."""

from typing import Any

import numpy as np
import pytest

from app.core.building import Building
from app.core.maps import FourierMap
from app.core.maps.terms import Built
from app.core.samplers.base import FrequencySet
from service_tests.cases import with_nightly
from service_tests.core.combinations import Fields, with_rows
from service_tests.core.discrepancy.sets import CPU_BOX, CPU_SIGMA
from service_tests.core.interrupted import WatchedWork
from service_tests.core.specs import spec

HALTON = {"kind": "halton", "scramble": "reverse_radix"}


WEIGHTED: Fields = {"kind": "weighted"}
GLOBAL: Fields = {"kind": "global_adaptive", "iterations": 40}
GREEDY: Fields = {"kind": "greedy_adaptive", "iterations": 30}
LATTICE: Fields = {"kind": "lattice", "learn": True}
EVERY = [WEIGHTED, GLOBAL, GREEDY, LATTICE]
SMALL: dict[str, Any] = {"s": 40}
every = pytest.mark.parametrize("over", EVERY, ids=lambda over: over["kind"])
quick_first = pytest.mark.parametrize(
    "over", with_nightly([WEIGHTED, GLOBAL, LATTICE], [GREEDY]), ids=lambda over: over["kind"]
)
"""Greedy sets, which take longest, only in long runs."""


def on(over: Fields, its_kernel: Fields | None = None, d: int = 4, **members: Any) -> dict[str, Any]:
    its = dict(its_kernel or {"kind": "gaussian", "length_scale": 1.5})
    if isinstance(its.get("length_scale"), str):
        its["length_scale"] = np.linspace(0.75, 3, d).tolist()
    box = {"box": 2.0, "box_scale": 1.0} if "dataset" not in over else {}
    return {"kernel": its, "sampler": box | over, "input_dim": d, **SMALL, **members}


class Watched(WatchedWork):
    """A build that is watched."""

    def __init__(self, state: bytes | None = None, most: int | None = None, threads: int = 1, d: int = 4) -> None:
        super().__init__(state, most)
        self.building = with_rows(d)._replace(threads=threads, progress=self)


def built(building: Building | None = None, **members: Any) -> Built:
    return FourierMap.build(spec(**{"dtype": "float64"} | members), building or Building())


def cpu(s: int, box_scale: float, **fields: Any) -> Built:
    """On the box of the cpu data, from the base that the figures are of."""
    over: Fields = {"base": HALTON, "box": CPU_BOX.tolist(), "box_scale": box_scale, **fields}
    return built(Building(2), input_dim=21, kernel={"kind": "gaussian", "length_scale": CPU_SIGMA}, sampler=over, s=s)


def as_set(made: Built) -> FrequencySet:
    return FrequencySet(made.arrays["frequencies"], made.arrays["weights"], made.warnings, made.report)


def digest(made: Built) -> bytes:
    return b"".join(array.tobytes() for array in made.arrays.values())
