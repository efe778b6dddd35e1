"""Sums over subsets of coordinates that several tests look at."""

from typing import Any

D = 6
SUBSETS = [[0, 1, 2], [5, 2], [4], [1, 2, 4, 5]]
WEIGHTS = [0.5, 1.0, 3.0, 0.25]
SCALES = [0.4, 1.0, 2.5, 7.0, 1.5, 0.8]


def anova(**fields: Any) -> dict[str, Any]:
    return {"kind": "anova", "length_scale": SCALES, "subsets": SUBSETS, "weights": WEIGHTS} | fields


def windows(image: list[int], patch: list[int], **fields: Any) -> dict[str, Any]:
    return {"kind": "anova", "length_scale": 1.5, "windows": {"image_shape": image, "patch_shape": patch}} | fields
