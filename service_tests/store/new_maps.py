"""Maps to store, of random arrays."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.maps.terms import Built
from app.store.maps import NewMap
from app.store.pieces import PIECE_BYTES


def new(name: str = "m", seed: int = 0, megabytes: float = 0.001) -> NewMap:
    rng = np.random.default_rng(seed)
    arrays: dict[str, NDArray[Any]] = {
        "frequencies": rng.normal(size=(int(megabytes * PIECE_BYTES / 8), 2)).astype(np.float32),
        "weights": rng.random(5),
    }
    spec = json.dumps({"seed": seed})
    return NewMap(name, spec, Built(arrays, n_frequencies=1, n_output=2, warnings=("careful",)), {"test": "1"})
