"""Recommendations as answers of the service that lead on to a pipeline or a table."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from bochner_client.arrays import as_numbers
from bochner_client.rows import is_dense

_COLUMNS = (
    "n_output",
    "score_mean",
    "score_sd",
    "choosing_score",
    "error_mean",
    "error_sd",
    "tied_with_best",
    "bytes",
    "seconds_per_1000_rows",
)
_PRINTED = 10


class Recommendation(dict[str, Any]):
    """The answer to a recommendation: a dictionary, as the HTTP API describes it; notebooks show it as a table."""

    url: str | None = None
    """Address of the service that answered."""

    def transformer(self, **arguments: Any) -> Any:
        """Return the transformer for the best map of this service: a `HashMap` for kernel gmm, else a `FeatureMap`.

        Args:
            arguments: arguments of the transformer, such as `bits` of a `HashMap`; they override those of the map.

        Raises:
            ValueError: no map was recommended; `notes` and `skipped` say why.
        """
        from bochner_client.transformers import FeatureMap, HashMap

        best = self.get("best")
        if best is None:
            raise ValueError(f"no map was recommended: {'; '.join(self.get('notes') or ['see skipped'])}")
        kind = HashMap if best["kernel"]["kind"] == "gmm" else FeatureMap
        return kind.from_spec(best, **{"url": self.url, **arguments})

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary for each ranked map, the best first.

        It has the kernel and its length scale, the sampler, `s`, and the figures measured.
        """
        return [
            {
                "kernel": one["spec"]["kernel"]["kind"],
                "length_scale": one["spec"]["kernel"].get("length_scale"),
                "sampler": _words(one["spec"]["sampler"]),
                "s": one["spec"]["s"],
            }
            | {name: one[name] for name in _COLUMNS if one.get(name) is not None}
            for one in self["ranked"]
        ]

    def to_frame(self) -> Any:
        """Return `rows` as a pandas data frame."""
        import pandas

        return pandas.DataFrame(self.rows())

    def __repr__(self) -> str:
        """Return the first lines of the table as text, and the remarks; `dict(found)` shows all members."""
        lines = [[*row] for row in self._table()[: _PRINTED + 1]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(f"{one:<{width}}" for one, width in zip(line, widths, strict=True)) for line in lines]
        rest = len(self["ranked"]) - _PRINTED
        return "\n".join([*text, *([f"… and {rest} more"] if rest > 0 else []), *self._remarks()])

    def _repr_html_(self) -> str:
        heads, *rows = self._table()
        lines = ("".join(f"<td>{escape(one)}</td>" for one in row) for row in rows)
        table = f"<tr>{''.join(f'<th>{escape(one)}</th>' for one in heads)}</tr>"
        remarks = "".join(f"<p>{escape(one)}</p>" for one in self._remarks())
        return f"<table>{table}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>{remarks}"

    def _table(self) -> list[list[str]]:
        """Return the names of the figures, and the figures of each map, as text."""
        rows = self.rows()
        names = dict.fromkeys(name for row in rows for name in row)
        return [[*names], *([_shown(row.get(name)) for name in names] for row in rows)]

    def _remarks(self) -> list[str]:
        """Return the scores without a map, and the notes of the service."""
        scores = ", ".join(f"{one['name']} {one['score']:.4g}" for one in self.get("baselines", ()))
        return [*([f"scores without a map: {scores}"] if scores else []), *self.get("notes", ())]


_MOST_ROWS, _MOST_CLASSES = 1000, 100


def trees(rows: Any, labels: Any, labels_are: str | None = None) -> list[dict[str, Any]]:
    """Return the score of scikit-learn's boosted trees on rows and labels, in three-fold cross-validation.

    No score without scikit-learn, or if rows or labels are in the service or rows are sparse. It is a baseline like
    those of the service, of at most 1,000 rows, so that it shows where trees are better than any kernel.
    """
    if not is_dense(rows) or isinstance(labels, Mapping):
        return []
    rows, labels = as_numbers(rows), np.asarray(labels)
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
        from sklearn.model_selection import cross_val_score
    except ImportError:
        return []
    taken = np.random.default_rng(0).permutation(len(rows))[:_MOST_ROWS]
    targets = labels[taken]
    are_numbers = labels_are == "numbers"
    if labels_are is None and targets.dtype.kind in "iuf":  # as the service decides
        are_numbers = len(np.unique(labels)) > _MOST_CLASSES or bool((targets % 1 != 0).any())
    model = (HistGradientBoostingRegressor if are_numbers else HistGradientBoostingClassifier)(random_state=0)
    return [
        {"name": "hist_gradient_boosting", "score": float(cross_val_score(model, rows[taken], targets, cv=3).mean())}
    ]


def _words(sampler: dict[str, Any]) -> str:
    """Return a sampler in a few words: its kind, and its selection or the kind of its base."""
    of = sampler.get("selection") or (sampler.get("base") or {}).get("kind")
    return sampler["kind"] if of is None else f"{sampler['kind']} ({of})"


def _shown(value: Any) -> str:
    if isinstance(value, list):  # a length scale for each column
        return f"{len(value)} of {min(value):.4g} to {max(value):.4g}"
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
