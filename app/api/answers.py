"""Arrays as responses."""

from fastapi import Response
from fastapi.responses import StreamingResponse

from app.formats import Answer, Format

_WHOLE_BELOW = 1 << 20


def array_response(answer: Answer, form: Format, headers: dict[str, str] | None = None) -> Response:
    """A response that writes small answers whole and large ones piece by piece, at the pace of the client.

    Large pieces are encoded while they are sent, so a response takes little more memory than its arrays.
    """
    pieces = form.encode(answer)
    if sum(array.nbytes for array in answer.values()) < _WHOLE_BELOW:
        return Response(b"".join(pieces), headers=headers, media_type=form.media_type)
    return StreamingResponse(pieces, headers=headers, media_type=form.media_type)
