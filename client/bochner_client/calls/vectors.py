"""Calls that take vectors: features, Gram blocks, codes, similarities."""

from typing import Literal, NamedTuple

from numpy.typing import DTypeLike

from bochner_client.arrays import Array, accepting, as_array, as_arrays, npz
from bochner_client.requests import NPZ, Body, Request, address, written_json
from bochner_client.rows import Rows, as_member, is_dense, vectors_body

Encoding = Literal["zero_bit", "pairs", "b_bit", "packed", "one_hot", "fingerprint"]
"""How codes are encoded."""
BitsOf = Literal["index", "mixed_index", "pair"]
"""The number from which `b_bit`, `packed` and `one_hot` codes take their bits."""
OnZero = Literal["refuse", "mark"]
"""How rows that are all zero are handled."""


class Gram(NamedTuple):
    """Kernel values of rows of x and y, `(n, m)`."""

    approximate: Array
    """Kernel values that the map approximates."""
    exact: Array | None
    """Exact kernel values; None unless requested."""


def transform(name: str, vectors: Rows, *, dtype: DTypeLike | None = None, out: Array | None = None) -> Request[Array]:
    """Return the features of rows, `(n, n_output)`, in their order.

    Args:
        name: name of the map.
        vectors: the rows.
        dtype: dtype of the features; None for that of the map. A narrower dtype is also used for the transfer.
        out: array of shape `(n, n_output)` to write the features into while they are received, such as a memory map. It
            determines the dtype.

    Raises:
        MapNotFound: the map does not exist.
        MapNotReady: a job is still building the map.
        InvalidInput: the rows are not valid for the map.
        TooLarge: there are too many rows for one request.
        NotAcceptable: a feature is too large for the dtype.
    """
    return Request(
        method="POST",
        path=address("v1", "maps", name, "transform"),
        headers=accepting(dtype if out is None else out.dtype),
        body=vectors_body(vectors),
        reads=as_array(dtype, out),
    )


def codes(
    name: str,
    vectors: Rows,
    encoding: Encoding | None = None,
    *,
    bits: int | None = None,
    bits_of: BitsOf | None = None,
    rows_per_band: int | None = None,
    on_zero: OnZero = "refuse",
    out: Array | None = None,
) -> Request[Array]:
    """Return the hash codes of rows, in their order.

    Args:
        name: name of the map.
        vectors: the rows.
        encoding: encoding of the codes; None for `zero_bit` of maps with kernel gmm, `packed` of Fourier maps, whose
            codes are signed. Fourier maps have only `packed` and `fingerprint`. Rows of `one_hot` are column indices
            `(n, s)`.
        bits: bits of a code.
        bits_of: the number from which codes take their bits.
        rows_per_band: for Fourier maps, number of bits of a fingerprint.
        on_zero: how rows that are all zero are handled.
        out: array in the shape of the encoding, to write the codes into while they are received.
    """
    return Request(
        method="POST",
        path=address("v1", "maps", name, "codes"),
        params={
            "encoding": encoding,
            "bits": bits,
            "bits_of": bits_of,
            "rows_per_band": rows_per_band,
            "on_zero": on_zero,
        },
        headers=accepting(None),
        body=vectors_body(vectors),
        reads=as_array(None, out),
    )


def kernel(name: str, x: Rows, y: Rows | None = None, *, exact: bool = False) -> Request[Gram]:
    """Return the kernel of each row of `x` with each row of `y`, as the map approximates it.

    Args:
        name: name of the map.
        x: rows.
        y: rows; None for those of `x`.
        exact: whether to return the exact kernel too.
    """
    rows = {"x": x} if y is None else {"x": x, "y": y}
    return Request(
        method="POST",
        path=address("v1", "maps", name, "kernel"),
        params={"exact": exact or None},
        headers={"Accept": NPZ},
        body=_members_body(rows),
        reads=as_arrays(_gram),
    )


def similarity(
    name: str,
    x: Rows,
    y: Rows,
    *,
    encoding: Encoding | None = None,
    bits: int | None = None,
    bits_of: BitsOf | None = None,
    rows_per_band: int | None = None,
    of: Literal["vectors", "codes"] | None = None,
    gamma: float | None = None,
) -> Request[dict[str, Array]]:
    """Estimate the kernel of row i of `x` with row i of `y`.

    Args:
        name: name of the map.
        x: rows, or codes in the encoding.
        y: the same number of rows, or codes in the encoding.
        encoding: encoding of the codes.
        bits: bits of a code.
        bits_of: the number from which codes take their bits.
        rows_per_band: for Fourier maps, number of bits of a fingerprint.
        of: whether `x` and `y` are vectors or codes; needed if their length does not tell.
        gamma: estimate the kernel e^(−γ(1 − ρ)) too; for maps with kernel gmm.

    Returns:
        Arrays by name: `estimate`, its `standard_error` and more. Fourier maps add the `agreement` of signed codes, and
        return it alone if no law relates it to the kernel.
    """
    return Request(
        method="POST",
        path=address("v1", "maps", name, "similarity"),
        params={
            "encoding": encoding,
            "bits": bits,
            "bits_of": bits_of,
            "rows_per_band": rows_per_band,
            "of": of,
            "gamma": gamma,
        },
        headers={"Accept": NPZ},
        body=_members_body({"x": x, "y": y}),
        reads=as_arrays(dict),
    )


def _members_body(rows: dict[str, Rows]) -> Body:
    """Return a body of rows or codes by name: .npz if all are dense, else JSON."""
    dense = {name: one for name, one in rows.items() if is_dense(one)}
    return npz(**dense) if len(dense) == len(rows) else written_json({k: as_member(one) for k, one in rows.items()})


def _gram(members: dict[str, Array]) -> Gram:
    return Gram(members["approximate"], members.get("exact"))
