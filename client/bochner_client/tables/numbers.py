"""Rules for which numbers are accepted, and in which dtype."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner_client.tables.fields import Field, TableError

Array = NDArray[Any]

# Number of whole numbers that are checked at a time.
_AT_A_TIME = 1 << 16


def with_missing(numbers: Array, missing: NDArray[np.intp], field: Field | None = None, first: int = 0) -> Array:
    """Return numbers `(n,)` with NaN at the missing positions, in a dtype that has NaN; float16 becomes float32.

    Raises:
        TableError: the dtype would round a whole number. Rows are counted from `first` on.
    """
    if not missing.size:
        return numbers.astype(np.float32) if numbers.dtype == np.float16 else numbers
    known = numbers.copy()
    known[missing] = 0
    filled = known.astype(np.result_type(numbers, np.float32))
    check_exact(known, filled.dtype, field, first)
    filled[missing] = np.nan
    return filled


def check_exact(numbers: Array, dtype: np.dtype[Any], field: Field | None, first: int, per_row: int = 1) -> None:
    """Raise TableError if `dtype` rounds any of the whole numbers. Rows of `per_row` numbers count from `first` on."""
    if numbers.dtype.kind not in "iu" or dtype.kind != "f" or 8 * numbers.itemsize <= np.finfo(dtype).nmant:
        return
    for start in range(0, numbers.size, _AT_A_TIME):
        some = numbers[start : start + _AT_A_TIME]
        cast = some.astype(dtype)
        # 2^63 and 2^64, to which a float may round up, are out of range of the integer dtype.
        odd = (cast >= 2.0 ** (8 * some.itemsize - (some.dtype.kind == "i"))) | (cast.astype(some.dtype) != some)
        if odd.any():
            place = start + int(np.argmax(odd))
            row = first + place // max(1, per_row)
            name, where = (None, "the array") if field is None else (field.name, field.quoted)
            raise TableError(f"{where} has {numbers[place]} in row {row}, which {dtype} would round", name)


def objects_as_numbers(values: Array, field: Field | None = None, first: int = 0) -> Array:
    """Return Python objects of any shape as float64, with NaN for None and the missing values of pandas.

    Raises:
        TableError: an object is not a number. Strings of digits are not, nor are decimals.
        TypeError: an object cannot be converted to a number.
    """
    if not values.ndim:
        raise TableError(f"expected rows, got an object of type {type(values.item()).__name__}")
    kinds = set(map(type, values.flat))
    odd = {kind for kind in kinds if not (issubclass(kind, Real | np.bool_) or _is_missing(kind))}
    if odd:
        place = next(place for place, value in np.ndenumerate(values) if type(value) in odd)
        value = values[place]
        where = f"{'' if field is None else field.quoted + ', '}row {first + place[0]}"
        try:
            float(value)
        except TypeError as error:
            raise TypeError(f"{where}: {error}") from None
        except ValueError:
            pass
        name = None if field is None else field.name
        raise TableError(f"{where} is {str(value)[:80]!r} of type {type(value).__name__}; expected a number", name)
    if any(map(_is_missing, kinds)):
        missing = np.fromiter((_is_missing(type(value)) for value in values.flat), bool, values.size)
        values = np.where(missing.reshape(values.shape), np.nan, values)
    found: Array = values.astype(np.float64)
    return found


def unmasked(x: Any) -> Array:
    """Return an array with NaN for masked entries, also of a list of masked arrays."""
    if isinstance(x, list | tuple) and any(map(np.ma.isMaskedArray, x)):
        x = np.ma.stack(x)
    found = np.asarray(x)
    if not np.ma.isMaskedArray(x) or not x.mask.any():
        return found
    return with_missing(found.ravel(), np.flatnonzero(x.mask)).reshape(found.shape)


def is_missing(value: object) -> bool:
    """Whether the value is None, NaN or a missing value of pandas."""
    return _is_missing(type(value)) or (isinstance(value, float) and value != value)


def _is_missing(kind: type) -> bool:
    return kind is type(None) or kind.__name__ == "NAType"
