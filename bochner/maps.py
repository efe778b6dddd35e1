"""Maps that are built or loaded here, and applied to rows as they come."""

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from app.core.arrays import Array, PostedRows, Rows
from app.core.building import Building, no_rows
from app.core.errors import InvalidInput
from app.core.hashing.encodings import BitsOf, CodeOptions, Codes, Encoding
from app.core.maps import FeatureMap, family_of, make_map, open_map
from app.core.spec import MapSpec
from app.processors import available
from bochner_client.arrays import as_numbers


class Map:
    """A feature map, applied to rows as a service applies it: checked, after the map's `input`, in its dtype.

    Rows are arrays (n, input_dim), what NumPy makes such arrays of, frames, or sparse arrays of SciPy. Methods raise
    InvalidInput where the service would answer 422. They hold all results in memory.
    """

    def __init__(self, feature_map: FeatureMap) -> None:
        self.feature_map = feature_map
        """The map as the core knows it, which takes rows that are checked already."""
        self.n_output = feature_map.n_output
        """Columns of a transformed row; of a map without features, codes of a row."""

    @property
    def spec(self) -> dict[str, Any]:
        """The spec with every default filled in, as the record of a service shows it."""
        return self.feature_map.spec.shown()

    def transform(self, rows: Any) -> Array:
        """Features of the rows, (n, n_output)."""
        return self.feature_map.transform(self._rows(rows, "/vectors"))

    def kernel(self, x: Any, y: Any = None, *, exact: bool = False) -> Array:
        """The kernel of the rows of x with those of y, or with each other, (n, m): approximate, or exact."""
        of_x = self._rows(x, "/x")
        of_y = of_x if y is None else self._rows(y, "/y")
        compare = self.feature_map.exact_gram if exact else self.feature_map.gram
        return compare(of_x, of_y)

    def codes(
        self,
        rows: Any,
        encoding: str | None = None,
        *,
        bits: int | None = None,
        bits_of: str | None = None,
        rows_per_band: int | None = None,
        on_zero: str = "refuse",
    ) -> Codes:
        """Codes of the rows; the options are those of `/codes`.

        Raises:
            InvalidOption: an option has no meaning for the encoding, or for the map.
        """
        named = None if encoding is None else Encoding(encoding)
        of_bits = None if bits_of is None else BitsOf(bits_of)
        options = CodeOptions(named, bits, of_bits, rows_per_band, marked=on_zero == "mark")
        return self.feature_map.codes(self._rows(rows, "/vectors"), self.feature_map.encoder_of(options))

    def _rows(self, rows: Any, pointer: str) -> Rows:
        try:
            found = sparse.csr_array(rows) if sparse.issparse(rows) else as_numbers(rows)  # type: ignore[call-overload]
        except (ValueError, TypeError) as error:
            raise InvalidInput(str(error), pointer) from None
        return self.feature_map.spec.gate(found, pointer)


def build(spec: Mapping[str, Any], datasets: Mapping[str, PostedRows] | None = None, threads: int = 0) -> Map:
    """The map of a spec, which is as a record of a service shows it: with numbers, and none left to data.

    Args:
        spec: what the map is to be.
        datasets: rows by the names that the spec has for them, float32 or float64.
        threads: how many may be used; 0 for all processors. They change no result.

    Raises:
        InvalidInput: there is no such map.
        pydantic.ValidationError: it is no spec.
    """
    known = datasets or {}

    def rows(dataset: str, pointer: str) -> Rows:
        return known[dataset] if dataset in known else no_rows(dataset, pointer)

    building = Building(threads=threads or available(), rows=rows)
    return Map(make_map(MapSpec.model_validate_json(json.dumps(spec)).with_defaults(), building))


def load(file: str | PathLike[str] | BinaryIO, threads: int = 0) -> Map:
    """The map in an `.npz` that was taken away from a service, by its path or as a file that is open.

    `threads` is how many may be used; 0 for all processors. They change no result.

    Raises:
        InvalidInput: its codes are of another hash stream than this version has.
    """
    with np.load(file, allow_pickle=False) as members:
        spec = MapSpec.model_validate_json(members["spec"].item())
        family = family_of(spec.sampler)
        stream = int(members["parameter_stream"].item()) if "parameter_stream" in members.files else None
        if stream != family.parameter_stream:
            raise InvalidInput(f"the file has hash stream {stream}; this version has {family.parameter_stream}")
        frozen = {name: members[name] for name in family.frozen(spec) if name in members.files}
    return Map(open_map(spec, frozen, threads or available()))
