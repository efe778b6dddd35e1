"""Diagnostics and recommendations, answered at once or by a job: the same bodies, answers and pictures."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from app.core.diagnostics import DIAGNOSTICS, Diagnostic, Finding
from app.core.errors import InvalidInput, TooLarge
from app.core.progress import OutOfTime, Progress
from app.jobs.checkpoints import Checkpoint
from app.jobs.handlers import Handlers, Result
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.jobs.record import JobRecord
from app.pictures import MEDIA_TYPE as SVG
from app.pictures import svg
from app.services.diagnostics import Diagnostics, Parse, Prepared
from app.services.errors import DatasetNotFound, MapNotReady, NotFound
from app.services.recommendations import Recommendations

JSON = "application/json"
DIAGNOSE, RECOMMEND = "diagnose", "recommend"
_BODY, _DIGESTS = "body", "digests"


class Measuring(NamedTuple):
    """Runs what has been prepared, or has a job do so.

    Methods raise what the preparations raise, and TooManyJobs.
    """

    diagnostics: Diagnostics
    recommendations: Recommendations
    jobs: Jobs
    max_bytes: int
    """What takes more memory is a job's work."""
    max_job_bytes: int
    """The most memory that a job may take."""

    def diagnose(
        self,
        name: str,
        diagnostic: type[Diagnostic],
        body: bytes,
        media_type: str,
        parse: Parse[Any],
        progress: Progress | None,
    ) -> bytes | JobRecord:
        """The answer of a diagnostic of a map in the media type, or the job that will give it."""
        prepared = self.diagnostics.prepare(name, diagnostic, body, parse)
        payload = {"map": name, "diagnostic": diagnostic.kind}
        return self._answer(prepared, media_type, DIAGNOSE, payload, body, [name], progress)

    def recommend(
        self, body: bytes, media_type: str, parse: Parse[Any], progress: Progress | None
    ) -> bytes | JobRecord:
        """The answer of a recommendation in the media type, or the job that will give it."""
        return self._answer(self.recommendations.prepare(body, parse), media_type, RECOMMEND, {}, body, [], progress)

    def _answer(
        self,
        prepared: Prepared,
        media_type: str,
        kind: str,
        subject: Mapping[str, str],
        body: bytes,
        maps: list[str],
        progress: Progress | None,
    ) -> bytes | JobRecord:
        if prepared.nbytes > self.max_job_bytes:
            detail = f"it would take {prepared.nbytes} bytes of memory; max_job_bytes is {self.max_job_bytes}"
            raise TooLarge(detail, limit="max_job_bytes", allowed=self.max_job_bytes, value=prepared.nbytes)
        payload = {**subject, _DIGESTS: self.diagnostics.digests(maps, prepared.datasets)}
        checkpoint = None
        if progress is not None and prepared.nbytes <= self.max_bytes:
            try:
                return _written(prepared.run(progress))[media_type]()
            except OutOfTime as over:
                checkpoint = Checkpoint(over.state, over.step, over.of, over.objective)
        return self.jobs.submit(kind, payload, attachments={_BODY: body}, subject=subject, checkpoint=checkpoint)


def job_handlers(diagnostics: Diagnostics, recommendations: Recommendations) -> Handlers:
    """The kinds of jobs that measure."""

    def diagnose(payload: Mapping[str, Any], context: JobContext) -> Result:
        diagnostic = DIAGNOSTICS[payload["diagnostic"]]
        name = payload["map"]
        return done(lambda body: diagnostics.prepare(name, diagnostic, body, _parsed), [name], context)

    def recommend(_: Mapping[str, Any], context: JobContext) -> Result:
        return done(lambda body: recommendations.prepare(body, _parsed), [], context)

    def done(prepare: Callable[[bytes], Prepared], maps: list[str], context: JobContext) -> Result:
        try:
            prepared = prepare(context.attachment(_BODY))
            found = diagnostics.digests(maps, prepared.datasets)
        except (NotFound, DatasetNotFound, MapNotReady) as error:  # it was there when the job was submitted
            raise InvalidInput(str(error)) from error
        changed = [name for name, digest in found.items() if digest != context.payload[_DIGESTS][name]]
        if changed:
            raise InvalidInput(f"{changed[0]} is not the one that was there when the job was submitted")
        return {media_type: write() for media_type, write in _written(prepared.run(context)).items()}

    return {DIAGNOSE: diagnose, RECOMMEND: recommend}


def _written(finding: Finding[Mapping[str, object]]) -> dict[str, Callable[[], bytes]]:
    """How to write a finding down, by media type."""
    written = {JSON: lambda: orjson.dumps(finding.answer)}
    drawing = finding.drawing
    return written if drawing is None else written | {SVG: lambda: svg(drawing)}


def _parsed(model: type[Any], body: bytes) -> Any:
    """A body that was checked when the job was submitted."""
    return model.model_validate_json(body)
