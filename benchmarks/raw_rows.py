"""Raw rows through a fitted input, beside rows that are scaled by hand: the same features and codes.

Everything goes through a service: features of a float64 map, codes of a float32 one. What linear SVMs make of such
codes is among the papers' tables.
"""

from typing import Any

import numpy as np

from benchmarks.data import standardised
from benchmarks.papers.over_http import own_service
from benchmarks.timing import Plan, Report

TITLE = "Raw rows"
SETS = ("letter", "cpu", "satimage")
_FEATURES = {"kernel": {"kind": "gaussian", "length_scale": 3.0}, "sampler": {"kind": "sobol"}, "s": 256}
_CODES = {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 1024}


def run(report: Report, plan: Plan) -> None:
    """Write by how much features differ at most, and how many codes."""
    if plan.data is None:
        report.say("Left out: it needs `--data`.")
        return
    table = []
    with own_service() as service:
        for name in SETS:
            rows = np.load(plan.data / f"{name}.npz")["X"][: 60 if plan.tiny else None]
            by_hand, spec = standardised(rows), {"input_dim": rows.shape[1]}
            fit: dict[str, Any] = {"input": {"fit": "standardize", "dataset": service.dataset(name, rows)}}
            with (
                service.map(**spec, **_FEATURES, **fit, dtype="float64") as mine,
                service.map(**spec, **_FEATURES, dtype="float64") as plain,
            ):
                off = float(np.abs(mine.transform(rows) - plain.transform(by_hand)).max())
            with service.map(**spec, **_CODES, **fit) as mine, service.map(**spec, **_CODES) as plain:
                codes, others = mine.codes(rows, 8), plain.codes(by_hand, 8)
            unlike = int((codes != others).sum())
            table.append((name, f"{len(rows):,} × {rows.shape[1]}", f"{off:.1e}", f"{unlike} of {codes.size:,}"))
            report.at_most(f"features of raw {name} rows, off from those scaled by hand", off, 1e-12, f"{off:.1e}")
            report.at_most(f"codes of raw {name} rows, unlike those scaled by hand", unlike, 0, str(unlike))
    report.table(("data", "rows", "features off by", "codes that differ"), table)
