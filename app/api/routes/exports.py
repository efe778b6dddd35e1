"""Maps to take away, as files for other programs."""

from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.api import etags, ranges
from app.api.answer_headers import headers
from app.api.array_answers import encoded_response
from app.api.context import Admitted, MapName
from app.api.schemas import BINARY
from app.formats.exports import EXPORTS

router = APIRouter(prefix="/v1/maps", tags=["maps"])

FileFormat = StrEnum("FileFormat", {name: name for name in EXPORTS})  # type: ignore[misc]
"""The names of the files."""
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file, under the name of the map.",
        "content": {form.media_type: {"schema": BINARY} for form in EXPORTS.values()},
        **headers("ETag", "Content-Disposition", "Accept-Ranges"),
    },
    **ranges.PARTS,
    **etags.NOT_MODIFIED,
}


@router.get(
    "/{name}/export",
    operation_id="export_map",
    response_class=Response,
    responses=_FILE,
    openapi_extra=etags.taking(etags.ASKED_AGAIN, ranges.PARTIAL),
)
async def export_map(
    name: MapName,
    request: Request,
    context: Admitted,
    file_format: Annotated[
        FileFormat, Query(alias="format", description=" ".join(form.described for form in EXPORTS.values()))
    ],
) -> Response:
    """Take a map away: a file with which features, or codes, are computed elsewhere; its `input` is in it."""
    form = EXPORTS[file_format]

    def work() -> Response:
        if "if-none-match" in request.headers and (known := context.maps.digest(name)):
            etags.check_known(request, etags.etag(known))
        taken = context.maps.taken_away(name)
        of_file = {
            "ETag": etags.etag(taken.digest),
            "Content-Disposition": f'attachment; filename="{name}.{file_format}"',
        }
        return encoded_response(form.write(taken), taken.arrays, form.media_type, of_file, context.admission)

    return await context.admission.compute(work)
