"""Recommendations as answers of the service that lead on to a pipeline or a table."""

from html import escape
from typing import Any

import numpy as np

_COLUMNS = ("n_output", "error_mean", "error_sd", "score_mean", "bytes", "seconds_per_1000_rows")


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
        """Return one dictionary for each ranked map, the best first: kernel, sampler, `s`, and the figures measured."""
        return [
            {"kernel": one["spec"]["kernel"]["kind"], "sampler": _words(one["spec"]["sampler"]), "s": one["spec"]["s"]}
            | {name: one[name] for name in _COLUMNS if one.get(name) is not None}
            for one in self["ranked"]
        ]

    def to_frame(self) -> Any:
        """Return `rows` as a pandas data frame."""
        import pandas

        return pandas.DataFrame(self.rows())

    def _repr_html_(self) -> str:
        rows = self.rows()
        heads = "".join(f"<th>{escape(name)}</th>" for name in (rows[0] if rows else ()))
        baselines = ", ".join(f"{one['name']} {one['score']:.4g}" for one in self.get("baselines", ()))
        lines = ("".join(f"<td>{escape(_shown(value))}</td>" for value in row.values()) for row in rows)
        table = f"<table><tr>{heads}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
        return table + (f"<p>Scores without a map: {escape(baselines)}</p>" if baselines else "")


_MOST_ROWS = 1000


def trees(rows: Any, labels: Any) -> list[dict[str, Any]]:
    """Return the score of scikit-learn's boosted trees on rows and labels, in three-fold cross-validation.

    No score without scikit-learn, or for other rows than an array with a list of labels. It is a baseline like those of
    the service, of at most 1,000 rows, so that it shows where trees are better than any kernel.
    """
    if not (isinstance(rows, np.ndarray) and isinstance(labels, list | tuple | np.ndarray)):
        return []
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
        from sklearn.model_selection import cross_val_score
    except ImportError:
        return []
    taken = np.random.default_rng(0).permutation(len(rows))[:_MOST_ROWS]
    targets = np.asarray(labels)[taken]
    is_of_numbers = targets.dtype.kind == "f" and bool((targets % 1 != 0).any())
    model = (HistGradientBoostingRegressor if is_of_numbers else HistGradientBoostingClassifier)(random_state=0)
    return [
        {"name": "hist_gradient_boosting", "score": float(cross_val_score(model, rows[taken], targets, cv=3).mean())}
    ]


def _words(sampler: dict[str, Any]) -> str:
    """Return a sampler in a few words: its kind, and its selection or the kind of its base."""
    of = sampler.get("selection") or (sampler.get("base") or {}).get("kind")
    return sampler["kind"] if of is None else f"{sampler['kind']} ({of})"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
