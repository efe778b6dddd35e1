"""What a map is worth: its diagnostics, prepared from a request and run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from app.core.arrays import Rows
from app.core.diagnostics import Diagnostic, Finding, GivenRows, Takes
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap
from app.core.model import Frozen
from app.core.progress import Progress
from app.formats.json_body import bytes_per_row, members
from app.formats.json_rows import named_datasets, rows_or_reference, vectors_or_dataset
from app.services.datasets import Datasets
from app.services.limits import Limits
from app.services.maps import Maps

Model = TypeVar("Model", bound=Frozen)
Parse = Callable[[type[Model], bytes], Model]
"""JSON to a model, or a refusal that names the member."""

_SAMPLE = ("vectors", "dataset", "rows", "seed")
ROW_MEMBERS: dict[Takes, tuple[str, ...]] = {
    Takes.nothing: (),
    Takes.rows: _SAMPLE,
    Takes.optional_rows: _SAMPLE,
    Takes.optional_pairs: ("x", "y"),
}
"""Members of a body that rows come in. Where a diagnostic has an option `seed`, it is that of a sample too."""


class Prepared(NamedTuple):
    """A diagnostic whose request has been read and checked."""

    run: Callable[[Progress], Finding[Mapping[str, object]]]
    nbytes: int
    """Memory that it takes beside its rows."""
    datasets: tuple[str, ...] = ()
    """The datasets it takes rows of."""


class Diagnostics:
    """Reads requests for diagnostics. Methods raise what Maps.ready and Datasets.rows raise, InvalidInput, TooLarge."""

    def __init__(self, maps: Maps, datasets: Datasets, limits: Limits, threads: int) -> None:
        self._maps = maps
        self._datasets = datasets
        self._limits = limits
        self._threads = threads

    def prepare(self, name: str, diagnostic: type[Diagnostic], body: bytes, parse: Parse[Any]) -> Prepared:
        """Read the request for one diagnostic of a map.

        Args:
            name: of the map.
            diagnostic: which.
            body: JSON.
            parse: reads the options.
        """
        subject = self._maps.ready(name)
        own = diagnostic.model_fields
        in_rows = [member for member in ROW_MEMBERS[diagnostic.takes] if member not in own]
        document = members(body, [], [*in_rows, *own], bytes_per_list=bytes_per_row(subject.spec.input_dim))
        options: Diagnostic = parse(diagnostic, orjson.dumps({key: document[key] for key in document if key in own}))
        rows = self._rows(subject, document, options)
        options.check(subject, rows)
        self._limits.check_result(options.made_rows_bytes(subject))
        return Prepared(
            lambda progress: options.run(subject, rows, progress, self._threads),
            options.memory_bytes(subject, rows),
            named_datasets(document),
        )

    def digests(self, maps: Sequence[str], datasets: Sequence[str]) -> dict[str, str | None]:
        """What stands under the names of maps and datasets now: it is what a job submitted now must measure."""
        of_maps = {f"map {name!r}": self._maps.get(name).digest for name in maps}
        return of_maps | {f"dataset {name!r}": self._datasets.get(name).digest for name in datasets}

    def _rows(self, subject: FeatureMap, document: dict[str, Any], options: Diagnostic) -> GivenRows:
        match options.takes:
            case Takes.nothing:
                return {}
            case Takes.optional_pairs:
                return {member: self._pair(subject, document, member) for member in ("x", "y") if member in document}
            case Takes.optional_rows if "vectors" not in document and "dataset" not in document:
                rows: GivenRows = {}
            case _:
                posted = vectors_or_dataset(document, subject.spec.input_dim)
                rows = {"vectors": subject.spec.gate(self._datasets.resolved(posted), "/vectors")}
        for member in ("rows", "seed"):
            if member in document and "dataset" not in document and member not in type(options).model_fields:
                raise InvalidInput(f"{member} is of a sample of a dataset; none came", f"/{member}")
        return rows

    def _pair(self, subject: FeatureMap, document: dict[str, Any], member: str) -> Rows:
        posted = rows_or_reference(document[member], subject.spec.input_dim, f"/{member}")
        return subject.spec.gate(self._datasets.resolved(posted), f"/{member}")
