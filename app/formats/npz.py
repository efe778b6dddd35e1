"""The .npz format: arrays under the names that members of JSON have."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from app.core.answers import Answer, OneHot, RowBlocks
from app.core.arrays import Array, PostedRows
from app.core.errors import InvalidInput
from app.core.ids import NumberIds, TextIds
from app.formats.base import Body, Encoded, Format, Posted
from app.formats.zipped import arrays, length, written


class Npz(Format):
    """`application/x-npz`: a zip of `.npy`, as `numpy.savez` and `numpy.savez_compressed` write it."""

    media_type = "application/x-npz"
    has_members = True
    answers_described = (
        "A `.npz` of the members that JSON has, uncompressed; codes one_hot as their column indices, ids of strings "
        "as `ids_text`, all of them in UTF-8, and `ids_ends`, where each ends."
    )
    rows_described = (
        "A `.npz` of the members that JSON has, each an array as application/x-npy takes it; compressed or not, and "
        "never more than BOCHNER_MAX_BODY_BYTES in all."
    )

    def decode(self, body: Body, width: int, wanted: str, optional: Sequence[str] = ()) -> Posted:
        """Read the member that is wanted, and those of the optional ones that came."""
        del width
        return {**members(body, [wanted], optional)}

    def matrix(self, body: Body) -> PostedRows:
        """Read the member `vectors`."""
        return members(body, ["vectors"])["vectors"]

    def encode(self, answer: Answer, dtype: np.dtype[Any] | None = None, warnings: Sequence[str] = ()) -> Encoded:
        """Write each array in its own dtype."""
        del dtype, warnings
        members: dict[str, Array | RowBlocks] = {}
        for name, one in answer.items():
            if isinstance(one, TextIds):  # an array of strings would have the length of the longest for each
                members |= {f"{name}_ends": one.ends, f"{name}_text": one.text}
            elif isinstance(one, NumberIds):
                members[name] = one.numbers
            else:
                members[name] = one.columns if isinstance(one, OneHot) else one
        return Encoded(written(members), length(members))


def members(
    body: Body, wanted: Sequence[str], optional: Sequence[str] = (), of_strings: Collection[str] = ()
) -> dict[str, Array]:
    """The arrays of a body, which must have those that are wanted and no others but the optional."""
    found = arrays(body.content, body.check_size, of_strings)
    for name in wanted:
        if name not in found:
            raise InvalidInput(f"the member {name} is missing in the .npz", f"/{name}")
    for name in found:
        if name not in {*wanted, *optional}:
            takes = ", ".join(dict.fromkeys([*wanted, *optional]))
            raise InvalidInput(f"{name[:80]!r} is no member of this request; it takes {takes}")
    return found
