"""The rows of a request: its body is read, decoded once, and brought behind the gate of a map."""

from fastapi import Request

from app.api import bodies
from app.api.context import Context
from app.core.arrays import Rows
from app.core.maps import FeatureMap
from app.formats import Body, Format


async def read(request: Request, context: Context, form: Format) -> Body:
    """The body of a request in a format, up to the limit; raises what `bodies.read` raises."""
    content = await bodies.read(request, context.limits.check_body, context.admission.client_timeout)
    headers = request.headers
    return Body(content, {name: headers[name] for name in form.request_headers if name in headers})


def rows(
    context: Context, form: Format, body: Body, feature_map: FeatureMap, wanted: str, *optional: str
) -> dict[str, Rows]:
    """The rows of a body, or of the datasets that it names in their place, as a map takes them.

    Args:
        context: of the process.
        form: that the body is in.
        body: of the request.
        feature_map: that the rows are for.
        wanted: the member that must be there.
        optional: members that may be there too.

    Raises:
        InvalidInput: the body is not what its format says, or the map does not take such rows.
        DatasetNotFound: a dataset that is named is not there.
    """
    posted = form.decode(body, feature_map.spec.input_dim, wanted, optional)
    return context.datasets.gated(posted, feature_map.spec.gate).rows
