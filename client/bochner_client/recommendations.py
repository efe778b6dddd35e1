"""Recommendations as answers of the service that lead on to a pipeline or a table."""

from html import escape
from typing import Any

_COLUMNS = ("n_output", "error_mean", "error_sd", "score_mean", "bytes", "seconds_per_1000_rows")


class Recommendation(dict[str, Any]):
    """The answer to a recommendation: a dictionary, as the HTTP API describes it; notebooks show it as a table."""

    def transformer(self, **arguments: Any) -> Any:
        """Return the transformer for the best map: a `HashMap` for kernel gmm, else a `FeatureMap`.

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
        return kind.from_spec(best, **arguments)

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
        lines = ("".join(f"<td>{escape(_shown(value))}</td>" for value in row.values()) for row in rows)
        return f"<table><tr>{heads}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _words(sampler: dict[str, Any]) -> str:
    """Return a sampler in a few words: its kind, and its selection or the kind of its base."""
    of = sampler.get("selection") or (sampler.get("base") or {}).get("kind")
    return sampler["kind"] if of is None else f"{sampler['kind']} ({of})"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
