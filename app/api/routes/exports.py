"""Maps to take away, as files for other programs."""

from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.api.answer_headers import headers
from app.api.array_answers import encoded_response
from app.api.context import Admitted, MapName
from app.formats.exports import EXPORTS

router = APIRouter(prefix="/v1/maps", tags=["maps"])

FileFormat = StrEnum("FileFormat", {name: name for name in EXPORTS})  # type: ignore[misc]
"""The names of the files."""
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file, under the name of the map.",
        "content": {form.media_type: _BINARY for form in EXPORTS.values()},
        **headers("ETag", "Content-Disposition"),
    },
    304: {"description": "`If-None-Match` names the digest.", **headers("ETag")},
}
_KNOWN = {
    "parameters": [
        {
            "name": "If-None-Match",
            "in": "header",
            "required": False,
            "description": "ETag of a file that the client has; 304 if it is still that of the map.",
            "schema": {"type": "string"},
        }
    ]
}


@router.get("/{name}/export", operation_id="export_map", response_class=Response, responses=_FILE, openapi_extra=_KNOWN)
async def export_map(
    name: MapName,
    request: Request,
    context: Admitted,
    file_format: Annotated[
        FileFormat, Query(alias="format", description=" ".join(form.described for form in EXPORTS.values()))
    ],
) -> Response:
    """Take a map away: a file with which features, or codes, are computed elsewhere; its `input` is in it."""
    known, form = request.headers.get("if-none-match", ""), EXPORTS[file_format]

    def work() -> Response:
        digest = context.maps.digest(name)
        if digest is not None and (f'"{digest}"' in known or known.strip() == "*"):
            return Response(status_code=304, headers={"ETag": f'"{digest}"'})
        taken = context.maps.taken_away(name)
        of_file = {
            "ETag": f'"{taken.digest}"',
            "Content-Disposition": f'attachment; filename="{name}.{file_format}"',
        }
        return encoded_response(form.write(taken), taken.arrays, form.media_type, of_file, context.admission)

    return await context.admission.compute(work)
