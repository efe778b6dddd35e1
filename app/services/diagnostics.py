"""What a map is worth: its diagnostics, prepared from a request and run."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from app.core.arrays import Rows
from app.core.datasets import column_ranges
from app.core.diagnostics.box_errors import box_errors, box_errors_bytes, box_errors_operations
from app.core.diagnostics.collisions import collision_errors, collision_errors_bytes, collision_errors_operations
from app.core.diagnostics.gram import gram_errors
from app.core.diagnostics.gram_cost import gram_errors_bytes, gram_errors_operations
from app.core.diagnostics.kinds import DIAGNOSTICS, BoxDiscrepancy, Collisions, DiagnosticKind, Gram, MaxError, Variance
from app.core.diagnostics.max_error import max_errors, max_errors_bytes, max_errors_operations
from app.core.diagnostics.variance import correlated_pairs, variances
from app.core.diagnostics.variance_cost import variances_bytes, variances_operations
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap
from app.core.maps.base import Gives
from app.core.model import Kind
from app.core.progress import Progress
from app.formats.json_body import bytes_per_row, members
from app.formats.json_rows import named_datasets, rows_or_reference, vectors_or_dataset
from app.pictures import gram_picture, max_error_picture
from app.services.datasets import Datasets
from app.services.limits import Limits
from app.services.maps import Maps

Model = TypeVar("Model", bound=Kind)
Parse = Callable[[type[Model], bytes], Model]
"""JSON to a model, or a refusal that names the member."""

Finding = dict[str, Any]
"""The answer of a diagnostic, as JSON has it, and what a picture of it needs beside."""


class Prepared(NamedTuple):
    """A diagnostic whose request has been read and checked."""

    operations: int
    """Multiplications that take as long."""
    run: Callable[[Progress], Finding]
    nbytes: int
    """Memory that it takes beside its rows."""
    datasets: tuple[str, ...] = ()
    """The datasets it takes rows of."""
    picture: Callable[[Finding], bytes] | None = None
    """The finding as SVG; None where there is nothing to draw."""


class Diagnostics:
    """Reads requests for diagnostics. Methods raise what Maps.ready and Datasets.rows raise, InvalidInput, TooLarge."""

    def __init__(self, maps: Maps, datasets: Datasets, limits: Limits, threads: int) -> None:
        self._maps = maps
        self._datasets = datasets
        self._limits = limits
        self._threads = threads

    def prepare(self, name: str, kind: DiagnosticKind, body: bytes, parse: Parse[Any]) -> Prepared:
        """Read the request for one diagnostic of a map.

        Args:
            name: of the map.
            kind: which.
            body: JSON.
            parse: reads the options.
        """
        subject = self._maps.ready(name)
        model, row_members = DIAGNOSTICS[kind], ROW_MEMBERS[kind]
        width = subject.spec.input_dim
        document = members(body, [], [*row_members, *model.model_fields], bytes_per_list=bytes_per_row(width))
        options = parse(model, orjson.dumps({key: document[key] for key in document if key in model.model_fields}))
        prepared = self._prepared(subject, document, options)
        return prepared._replace(datasets=named_datasets(document))

    def _prepared(self, subject: FeatureMap, document: dict[str, Any], options: Kind) -> Prepared:
        match options:
            case Gram():
                return self._gram(subject, self._rows(subject, document), options)
            case Collisions():
                return self._collisions(_with_codes(subject), self._rows(subject, document), options)
            case BoxDiscrepancy():
                return self._box_discrepancy(_with_frequencies(subject), document, options)
            case MaxError():
                return self._max_error(_with_frequencies(subject), options)
            case Variance():
                return self._variance(subject, document, options)
        raise AssertionError(f"{type(options).__name__} has no reader")

    def _gram(self, subject: FeatureMap, rows: Rows, options: Gram) -> Prepared:
        return Prepared(
            gram_errors_operations(subject, rows, options.estimators, options.seeds),
            lambda progress: dict(
                gram_errors(
                    subject, rows, options.estimators, seeds=options.seeds, seed=options.seed, progress=progress
                )
            ),
            gram_errors_bytes(subject, rows, options.estimators, options.seeds),
            picture=gram_picture,
        )

    def _collisions(self, subject: FeatureMap, rows: Rows, options: Collisions) -> Prepared:
        return Prepared(
            collision_errors_operations(subject, rows, options.pairs),
            lambda progress: dict(
                collision_errors(
                    subject,
                    rows,
                    bits=options.bits,
                    bits_of=options.taken_from,
                    gamma=options.gamma,
                    most_pairs=options.pairs,
                    seed=options.seed,
                    progress=progress,
                )
            ),
            collision_errors_bytes(subject, rows.shape[0], options.pairs),
        )

    def _box_discrepancy(self, subject: FeatureMap, document: dict[str, Any], options: BoxDiscrepancy) -> Prepared:
        if (options.box is None) != any(member in document for member in ("dataset", "vectors")):
            raise InvalidInput("box, or a dataset or vectors to take it from, is wanted, and not both", "/box")
        for member in ("rows", "seed"):
            if member in document and "dataset" not in document:
                raise InvalidInput(f"{member} is of a sample of a dataset; none came", f"/{member}")
        d = subject.spec.input_dim
        if options.box is None:
            box = _ranges(subject, self._rows(subject, document))
        else:
            box = np.array(np.broadcast_to(options.box, d) if np.ndim(options.box) == 0 else options.box, np.float64)
        if len(box) != d:
            raise InvalidInput(f"box has {len(box)} entries; input_dim {d} wants as many, or one number", "/box")
        return Prepared(
            box_errors_operations(subject, len(options.box_scales)),
            lambda progress: dict(box_errors(subject, box, options.box_scales, self._threads, progress)),
            box_errors_bytes(subject),
        )

    def _max_error(self, subject: FeatureMap, options: MaxError) -> Prepared:
        return Prepared(
            max_errors_operations(subject, len(options.diameters), options.samples),
            lambda progress: dict(max_errors(subject, options.diameters, options.samples, options.seed, progress)),
            max_errors_bytes(subject),
            picture=max_error_picture,
        )

    def _variance(self, subject: FeatureMap, document: dict[str, Any], options: Variance) -> Prepared:
        given = [member for member in ("x", "y") if member in document]
        if (options.correlations is None) != (given == ["x", "y"]) or len(given) == 1:
            raise InvalidInput("x and y, or correlations instead of both, are wanted", "/x")
        if options.correlations is not None:
            if subject.kernel.is_centered:
                # Rows at the centre are dense.
                self._limits.check_result(16 * len(options.correlations) * subject.spec.input_dim)
            x, y = correlated_pairs(subject, list(options.correlations))
        else:
            x, y = (self._gated(subject, document[member], f"/{member}") for member in given)
        return Prepared(
            variances_operations(subject, x, y, options.repeats),
            lambda progress: dict(
                variances(
                    subject, x, y, gamma=options.gamma, repeats=options.repeats, seed=options.seed, progress=progress
                )
            ),
            variances_bytes(subject, x, y, options.repeats),
        )

    def digests(self, maps: Sequence[str], datasets: Sequence[str]) -> dict[str, str | None]:
        """What stands under the names of maps and datasets now: it is what a job submitted now must measure."""
        of_maps = {f"map {name!r}": self._maps.get(name).digest for name in maps}
        return of_maps | {f"dataset {name!r}": self._datasets.get(name).digest for name in datasets}

    def _rows(self, subject: FeatureMap, document: dict[str, Any]) -> Rows:
        posted = vectors_or_dataset(document, subject.spec.input_dim)
        return subject.spec.gate(self._datasets.resolved(posted), "/vectors")

    def _gated(self, subject: FeatureMap, value: Any, pointer: str) -> Rows:
        posted = rows_or_reference(value, subject.spec.input_dim, pointer)
        return subject.spec.gate(self._datasets.resolved(posted), pointer)


_ROWS = ("vectors", "dataset", "rows")
# Members of a body beside the options; the seed of a sample of a dataset is the option's.
ROW_MEMBERS: dict[DiagnosticKind, tuple[str, ...]] = {
    DiagnosticKind.gram: _ROWS,
    DiagnosticKind.box_discrepancy: (*_ROWS, "seed"),
    DiagnosticKind.max_error: (),
    DiagnosticKind.variance: ("x", "y"),
    DiagnosticKind.collisions: _ROWS,
}


def _ranges(subject: FeatureMap, rows: Rows) -> NDArray[np.float64]:
    """How far differences of the rows reach in each coordinate, as the kernel compares them, (d,)."""
    if not rows.shape[0]:
        raise InvalidInput("no rows came; a box needs some", "/vectors")
    least, most = column_ranges(subject.kernel.prepared(rows, "/vectors"))
    return np.asarray(most - least, np.float64)


def _with_frequencies(subject: FeatureMap) -> FeatureMap:
    subject.check_gives(Gives.frequencies)
    return subject


def _with_codes(subject: FeatureMap) -> FeatureMap:
    if Gives.codes not in subject.gives:
        raise InvalidInput(f"kernel {subject.spec.kernel.kind} has no codes; collisions is for maps of kernel gmm")
    return subject
