"""Indexes of vectors of which many are similar, and their exact similarities."""

from typing import Any

import numpy as np

from app.container import Container
from app.core.arrays import Matrix
from app.core.indexes.options import DeleteOptions
from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services.asked import NOTHING, AskedSpec
from app.services.index_vectors import Removal
from app.services.indexes import AskedIndex
from app.settings import Settings

GMM: dict[str, Any] = {"input_dim": 5, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 256, "seed": 3}
SIGNED = {**GMM, "kernel": {"kind": "gaussian", "length_scale": 1.5}, "sampler": {"kind": "monte_carlo"}, "s": 512}


def min_max(x: Matrix, y: Matrix) -> Matrix:
    found: Matrix = np.minimum(x[:, None], y).sum(axis=2) / np.maximum(x[:, None], y).sum(axis=2)
    return found


def gaussian(x: Matrix, y: Matrix) -> Matrix:
    found: Matrix = np.exp(-((x[:, None] - y) ** 2).sum(axis=2) / (2 * 1.5**2))
    return found


def service_with(url: str, spec: dict[str, Any], **asked: Any) -> Container:
    service = Container(Settings(redis_url=url))
    service.map_creation.create("m", AskedSpec(MapSpec.model_validate(spec), NOTHING), Progress())
    service.indexes.create("i", AskedIndex(map="m", **asked), None)
    return service


def remove(service: Container, name: str, asked: DeleteOptions) -> Removal:
    removal = service.index_vectors.begin_removal(name, asked)
    with removal.under_way():
        for step in removal.steps:
            step()
    return removal


def crowded(rng: np.random.Generator, n: int) -> Matrix:
    """Rows around few centres, so that many are similar and some are not."""
    centres = rng.gamma(2, size=(12, 5))
    rows: Matrix = centres[rng.integers(12, size=n)] * np.exp(rng.normal(0, 0.25, (n, 5)))
    return rows.astype(np.float32).astype(np.float64)
