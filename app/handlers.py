"""The handlers of jobs: they turn a payload into work on rows, and a finding into bodies."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from app.core.datasets import Reference
from app.core.diagnostics import DIAGNOSTICS
from app.core.errors import InvalidInput
from app.core.recommendations.options import RecommendationOptions
from app.formats import Posted, findings, json_measuring
from app.jobs.job_context import Handlers, JobContext, Result
from app.services import building, recommendations
from app.services.datasets import Datasets
from app.services.errors import DatasetNotFound, MapNotReady, NotFound
from app.services.maps import Maps
from app.services.measurements import DIAGNOSE, RECOMMEND, Measurement, Measurements, detached
from app.services.recommendations import Recommendations
from app.store.maps import MapStore

_BODY = "body"
"""The body of the request, which jobs of version 0.1.0 have attached. Later jobs have `options` in their payload."""


class Measuring(NamedTuple):
    """The services that jobs measure with."""

    maps: Maps
    datasets: Datasets
    recommendations: Recommendations
    measurements: Measurements

    def diagnostic(self, context: JobContext) -> Measurement:
        """The diagnostic that a job was submitted for."""
        payload = context.payload
        wanted, subject = DIAGNOSTICS[payload["diagnostic"]], self.maps.open(payload["map"])
        spec = subject.feature_map.spec
        if "options" in payload:
            options, posted = wanted.model_validate_json(payload["options"]), _posted(context)
        else:
            body = context.attachment(_BODY)
            options, posted = json_measuring.diagnostic(body, wanted, spec.input_dim, _parsed)
        return self.measurements.diagnostic(subject, options, self.datasets.gated(posted, spec.gate))

    def recommendation(self, context: JobContext) -> Measurement:
        """The recommendation that a job was submitted for."""
        payload = context.payload
        if "options" in payload:
            options, posted = RecommendationOptions.model_validate_json(payload["options"]), _posted(context)
        else:
            options, posted = json_measuring.recommendation(context.attachment(_BODY), _parsed)
        given = self.datasets.gated(posted, recommendations.gate(options.seed))
        scaled = self.recommendations.scaled_kernel(options, given.rows["vectors"])
        return self.recommendations.measurement(options, json_measuring.kernel(scaled, _parsed), given)


def handlers(map_store: MapStore, measuring: Measuring, threads: int) -> Handlers:
    """The handlers of every kind of job.

    Args:
        map_store: where maps are kept.
        measuring: services to measure with.
        threads: how many the building of a map may use.
    """
    return {
        building.KIND: partial(building.build, map_store, measuring.datasets, threads),
        DIAGNOSE: partial(_measure, measuring.diagnostic),
        RECOMMEND: partial(_measure, measuring.recommendation),
    }


def _measure(prepare: Callable[[JobContext], Measurement], payload: Mapping[str, Any], context: JobContext) -> Result:
    """Run a measurement; InvalidInput if a map or dataset is not the one of the request any more."""
    try:
        measurement = prepare(context)
    except (NotFound, DatasetNotFound, MapNotReady) as error:
        raise InvalidInput(str(error)) from error
    changed = [called for called, digest in measurement.digests.items() if digest != payload["digests"][called]]
    if changed:
        raise InvalidInput(f"{changed[0]} is not the one that was there when the job was submitted")
    written = findings.writers(measurement.run(context))
    return {media_type: write() for media_type, write in written.items()}


def _posted(context: JobContext) -> Posted:
    """The rows that a job was submitted with, or the references to them."""
    return {
        member: detached(context.attachment(member)) if reference is None else Reference(*reference)
        for member, reference in context.payload["rows"].items()
    }


def _parsed(model: type[Any], body: bytes) -> Any:
    """Read a model. Its JSON was checked when the job was submitted."""
    return model.model_validate_json(body)
