"""Calls that take vectors: features, Gram blocks, codes, similarities."""

from typing import Literal, NamedTuple

from numpy.typing import DTypeLike

from bochner_client.arrays import Array, accepting, as_array, as_arrays, npz
from bochner_client.requests import NPZ, Body, Request, address, written_json
from bochner_client.rows import Rows, as_member, is_dense, vectors_body

Encoding = Literal["zero_bit", "pairs", "b_bit", "packed", "one_hot", "fingerprint"]
"""How codes are written."""
BitsOf = Literal["index", "mixed_index", "pair"]
"""What `b_bit`, `packed` and `one_hot` take their bits from."""
OnZero = Literal["refuse", "mark"]
"""What becomes of rows that are all zero."""


class Gram(NamedTuple):
    """The kernel of some rows with others, (n, m)."""

    approximate: Array
    """As the map approximates it."""
    exact: Array | None
    """As it is; None unless it was asked for."""


def transform(name: str, vectors: Rows, *, dtype: DTypeLike | None = None, out: Array | None = None) -> Request[Array]:
    """Features of rows, (n, n_output), in their order.

    Args:
        name: the map's name.
        vectors: the rows.
        dtype: what to give them in; without it, what the map has. Narrower ones travel so.
        out: an array of that shape to write them into as they come, such as a memory map. It decides the dtype.

    Raises:
        MapNotFound: there is no such map.
        MapNotReady: a job still builds it.
        InvalidInput: the rows are none that the map takes.
        TooLarge: they are too many for one request.
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
    """Hash codes of rows, in their order: of kernel gmm, by default `zero_bit`; of Fourier maps signed, `packed`.

    They have the shape of the encoding. Rows of `one_hot` are column indices, (n, s). Fourier maps have `packed`, and
    `fingerprint`, each of `rows_per_band` bits. `out` is an array of that shape to write them into as they come.
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
    """The kernel of the rows of x with those of y, or with each other, as a map has it; exact too, if asked."""
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
    """The estimated kernel of row i of x with row i of y, as `estimate`, with its `standard_error` and more.

    x and y are rows, or codes in the encoding that is named; `of` says which, where their length does not. With
    `gamma` the kernel e^(−γ(1 − ρ)) is estimated too, from maps with kernel gmm. Fourier maps give the `agreement` of
    signed codes, and where no law ties it to the kernel, that alone.
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
    """A body of rows, or codes, by their names: as .npz if all are dense, else as JSON."""
    dense = {name: one for name, one in rows.items() if is_dense(one)}
    return npz(**dense) if len(dense) == len(rows) else written_json({k: as_member(one) for k, one in rows.items()})


def _gram(members: dict[str, Array]) -> Gram:
    return Gram(members["approximate"], members.get("exact"))
