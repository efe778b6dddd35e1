"""What is done with posted vectors: features and Gram blocks."""

import numpy as np

from app.core.arrays import Array
from app.core.maps.base import Gives
from app.formats import Answer, Format
from app.services.datasets import Datasets
from app.services.limits import Limits
from app.services.maps import Maps


class Vectors:
    """Applies maps to posted vectors, or to rows of a dataset named in their place.

    Methods raise what Maps.ready and Datasets.rows raise, InvalidInput and TooLarge.
    """

    def __init__(self, maps: Maps, datasets: Datasets, limits: Limits) -> None:
        self._maps = maps
        self._datasets = datasets
        self._limits = limits

    def transform(self, name: str, form: Format, body: bytes) -> Answer:
        """Features of the posted vectors, in their order; beside them the map's signature, if it has one."""
        feature_map = self._maps.ready(name)
        feature_map.check_gives(Gives.features, f"map {name!r}")
        posted = form.decode(body, feature_map.spec.input_dim, "vectors")["vectors"]
        x = feature_map.spec.gate(self._datasets.resolved(posted), "/vectors")
        self._limits.check_result(x.shape[0] * feature_map.n_output * feature_map.gram_dtype.itemsize)
        self._limits.check_operations(feature_map.transform_operations(x))
        answer: dict[str, Array] = {"features": feature_map.transform(x)}
        if feature_map.signature is not None:
            answer["signature"] = feature_map.signature
        return answer

    def kernel(self, name: str, form: Format, body: bytes, exact: bool) -> Answer:
        """Approximate Gram block of x against y, or of x against itself, and the exact one beside it if wanted."""
        feature_map = self._maps.ready(name)
        posted = form.decode(body, feature_map.spec.input_dim, "x", ["y"])
        x = feature_map.spec.gate(self._datasets.resolved(posted["x"]), "/x")
        y = feature_map.spec.gate(self._datasets.resolved(posted["y"]), "/y") if "y" in posted else x
        n, m = x.shape[0], y.shape[0]
        self._limits.check_result(n * m * feature_map.gram_dtype.itemsize * (2 if exact else 1))
        exactly = feature_map.exact_operations(x, y) if exact else 0
        self._limits.check_operations(feature_map.gram_operations(x, y) + exactly)
        if exact:
            self._limits.check_result(feature_map.exact_bytes(x, y))
        answer: dict[str, Array] = {"approximate": feature_map.gram(x, y)}
        if exact:
            dtype = np.finfo(feature_map.gram_dtype).dtype  # of the real part, where that is complex
            answer["exact"] = feature_map.exact_gram(x, y).astype(dtype, copy=False)
        return answer
