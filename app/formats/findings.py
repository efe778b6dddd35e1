"""Writes findings of diagnostics and recommendations: the answer as JSON, and the picture, if there is one."""

from collections.abc import Callable, Mapping

import orjson

from app.core.diagnostics import Finding
from app.core.drawing import Drawing
from app.formats.json import Json
from app.pictures import MEDIA_TYPE as SVG


def writers(finding: Finding[Mapping[str, object]]) -> dict[str, Callable[[], bytes]]:
    """Functions that write a finding, by media type. JSON comes first."""
    known = {Json.media_type: lambda: orjson.dumps(finding.answer)}
    drawing = finding.drawing
    return known if drawing is None else known | {SVG: lambda: _picture(drawing)}


def _picture(drawing: Drawing) -> bytes:
    from app.pictures.svg import svg

    return svg(drawing)
