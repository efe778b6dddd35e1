"""Feature maps that are built or loaded in this process, and applied to rows."""

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
from bochner_client.rows import summed


class Map:
    """A feature map, applied to rows as the service applies it: checked, preprocessed (`input`), in the map's dtype.

    Rows are arrays `(n, input_dim)`, anything that NumPy converts to such arrays, data frames, or sparse arrays of
    SciPy. Methods raise InvalidInput where the service would answer 422. They hold all results in memory.

    Args:
        feature_map: the map to apply, as `made` or `opened` returns it; `build` and `load` do this in one step.
    """

    def __init__(self, feature_map: FeatureMap) -> None:
        self.feature_map = feature_map
        """The map without checks and preprocessing: it takes rows that are checked already."""
        self.n_output = feature_map.n_output
        """Number of columns of a transformed row; for a map without features, number of codes of a row."""

    @property
    def spec(self) -> dict[str, Any]:
        """The spec with every default filled in, as in the record of a service."""
        return self.feature_map.spec.shown()

    def transform(self, rows: Any) -> Array:
        """Return the features of the rows.

        Args:
            rows: the rows `(n, input_dim)`.

        Returns:
            The features `(n, n_output)`.
        """
        return self.feature_map.transform(self._rows(rows, "/vectors"))

    def kernel(self, x: Any, y: Any = None, *, exact: bool = False) -> Array:
        """Return the kernel of each row of `x` with each row of `y`.

        Args:
            x: rows `(n, input_dim)`.
            y: rows `(m, input_dim)`; None for those of `x`.
            exact: whether to return the exact kernel rather than the map's approximation.

        Returns:
            The kernel values `(n, m)`.
        """
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
        """Return the codes of the rows; the options are those of `/codes`.

        Args:
            rows: the rows `(n, input_dim)`.
            encoding: name of an `Encoding`; None for the map's default.
            bits: bits of a code: 1 to 16 for b_bit, packed and one_hot, 32 or 64 for fingerprint.
            bits_of: name of a `BitsOf`, the number from which codes take their bits.
            rows_per_band: number of signed codes (of Fourier maps) that one fingerprint combines.
            on_zero: "refuse" to raise for rows that are all zero, "mark" to give them codes of −1.

        Raises:
            InvalidOption: an option does not apply to the encoding or to the map.
        """
        named = None if encoding is None else Encoding(encoding)
        of_bits = None if bits_of is None else BitsOf(bits_of)
        options = CodeOptions(named, bits, of_bits, rows_per_band, marked=on_zero == "mark")
        return self.feature_map.codes(self._rows(rows, "/vectors"), self.feature_map.encoder_of(options))

    def _rows(self, rows: Any, pointer: str) -> Rows:
        try:
            found = _canonical(rows) if sparse.issparse(rows) else as_numbers(rows)
        except (ValueError, TypeError) as error:
            raise InvalidInput(str(error), pointer) from None
        return self.feature_map.spec.gate(found, pointer)


def build(spec: Mapping[str, Any], datasets: Mapping[str, PostedRows] | None = None, threads: int = 0) -> Map:
    """Build the map of a spec. The spec has to be as in the record of a service: no field is left to the data.

    Args:
        spec: the spec of the map.
        datasets: rows by the dataset names that the spec refers to, float32 or float64.
        threads: number of threads to use; 0 for all processors. It does not change the result.

    Returns:
        The map.

    Raises:
        InvalidInput: the spec describes a map that cannot be built.
        pydantic.ValidationError: the spec is not valid.
    """
    known = datasets or {}

    def rows(dataset: str, pointer: str) -> Rows:
        found = known[dataset] if dataset in known else no_rows(dataset, pointer)
        return _canonical(found) if sparse.issparse(found) else found

    building = Building(threads=threads or available(), rows=rows)
    return Map(make_map(MapSpec.model_validate_json(json.dumps(spec)).with_defaults(), building))


def load(file: str | PathLike[str] | BinaryIO, threads: int = 0) -> Map:
    """Load a map from an `.npz` file that was exported from a service.

    Args:
        file: path of the file, or the open file.
        threads: number of threads to use; 0 for all processors. It does not change results.

    Returns:
        The map.

    Raises:
        InvalidInput: its codes come from another hash stream than that of this version.
    """
    with np.load(file, allow_pickle=False) as members:
        spec = MapSpec.model_validate_json(members["spec"].item())
        family = family_of(spec.sampler)
        stream = int(members["parameter_stream"].item()) if "parameter_stream" in members.files else None
        if stream != family.parameter_stream:
            raise InvalidInput(f"the file has hash stream {stream}; this version has {family.parameter_stream}")
        frozen = {name: members[name] for name in family.frozen(spec) if name in members.files}
    return Map(open_map(spec, frozen, threads or available()))


def _canonical(rows: Any) -> sparse.csr_array:
    """Return sparse rows of floats with columns in order, each once with its sum, as all that reads rows expects."""
    found = sparse.csr_array(summed(rows))
    return found.astype(np.float64) if found.dtype.kind in "biu" else found
