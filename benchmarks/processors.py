"""What other kinds of processors build and compute: what differs from this one in some bit, and by how much."""

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.timing import Plan, Report
from service_tests.core.elsewhere import Key, elsewhere, here, parts

TITLE = "On other processors"
D = 4


class Difference(NamedTuple):
    """How far the arrays of some maps are from those of the first kind of processor."""

    share: float
    """Of the entries, in the map with the largest share."""
    size: float
    """Largest length of a difference of rows, as part of the length of the row."""

    def __str__(self) -> str:
        """In words."""
        return f"{100 * self.share:.3g} %, {self.size:.1e}" if self.share else "the same"


def difference(here: Any, there: Any) -> Difference:
    """How far two arrays are from each other."""
    if here.shape != there.shape:
        return Difference(1.0, float("inf"))
    share = float((here != there).mean()) if here.size else 0.0
    rows, others = (
        array.reshape(len(array), -1) if array.ndim > 1 else array.reshape(-1, 1) for array in (here, there)
    )
    lengths = np.linalg.norm(rows, axis=1)
    apart = np.linalg.norm(rows - others, axis=1)
    return Difference(share, float(np.max(apart[lengths > 0] / lengths[lengths > 0], initial=0.0)))


def largest(found: dict[str, Any], other: dict[str, Any]) -> dict[Key, Difference]:
    """The largest differences of the float64 maps of each kernel and sampler."""
    of_key: dict[Key, list[Difference]] = defaultdict(list)
    for name, array in found.items():
        if " float64 " in name:
            of_key[parts(name)].append(difference(array, other[name]))
    return {key: Difference(max(d.share for d in all_), max(d.size for d in all_)) for key, all_ in of_key.items()}


def table(measured: dict[str, dict[Key, Difference]]) -> list[tuple[str, ...]]:
    """A row for everything that differs somewhere: what, of which sampler and kernels, and how much on each kind."""
    rows: dict[tuple[str, str, tuple[bool, ...]], list[Key]] = defaultdict(list)
    for key in next(iter(measured.values())):
        differs = tuple(bool(of_kind[key].share) for of_kind in measured.values())
        if any(differs):
            # An exact kernel does not hang on the sampler.
            rows[key.what, "" if key.what == "exact kernel" else key.sampler, differs].append(key)
    told = []
    for (what, sampler, _), keys in sorted(rows.items()):
        kernels = sorted({key.kernel for key in keys})
        sizes = [
            str(Difference(max(of_kind[key].share for key in keys), max(of_kind[key].size for key in keys)))
            for of_kind in measured.values()
        ]
        told.append((what, f"`{sampler}`" if sampler else "any", ", ".join(f"`{one}`" for one in kernels), *sizes))
    return told


def run(report: Report, plan: Plan) -> None:
    """Write the table."""
    kinds = here()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        samplers = "monte_carlo weighted" if plan.tiny else ""
        found = {
            kind: elsewhere(
                kind,
                place / f"{kind}.npz",
                place / "frozen.npz",
                D,
                samplers=samplers,
                loops=None if plan.tiny else place,
            )
            for kind in kinds
        }
    first = found.pop(kinds[0])
    measured = {kind: largest(first, other) for kind, other in found.items()}
    maps = len({name.split("/")[0] for name in first})
    report.say(
        f"{maps} maps in {D} dimensions or the fewest that they take, every kernel with every sampler, in float32 and "
        f"float64, built as on a processor with {kinds[0]} and on others, and opened there with the arrays of the "
        "first. What is not in the table has the same bits on all of them. Of float64: the largest share of entries "
        "that differ in a map, and the largest length of the difference of two rows as part of the row's."
    )
    report.table(("what", "sampler", "kernels", *measured), table(measured))
