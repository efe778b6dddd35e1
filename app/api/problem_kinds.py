"""The kinds of problems: the status of each, and the page that explains it."""

from typing import NamedTuple

from app.formats import FORMATS
from app.formats.parquet import Parquet


class Kind(NamedTuple):
    """One kind of problem."""

    status: int
    title: str
    page: str


KINDS = {
    "invalid-input": Kind(
        422,
        "The request is not valid",
        "The body, a parameter or a combination of them cannot be served. `detail` says what came and what was wanted; "
        "`errors` points at each place. Nothing was changed. Mend the request before sending it again.",
    ),
    "map-not-found": Kind(
        404, "There is no such map", "No map has this name: create it with PUT, or look at the list."
    ),
    "dataset-not-found": Kind(
        404,
        "There is no such dataset",
        "No dataset has this name, or the one that had it has expired: create it with PUT, or look at the list.",
    ),
    "array-not-found": Kind(
        404,
        "The map has no such array",
        "Offsets exist for the form `phase` only, a signature with negative weights, signs and radii with sampler "
        "`structured_orthogonal`; kernel `gmm` has no frequencies.",
    ),
    "map-exists": Kind(
        409,
        "Another map has the name",
        "Maps never change. Delete the one that is there, or give the new one another name. "
        "Putting the same spec again is no conflict.",
    ),
    "dataset-exists": Kind(
        409,
        "Another dataset has the name",
        "Datasets never change. Delete the one that is there, or give the new one another name. Putting the same rows "
        "again is no conflict; they then live as long as the last request says.",
    ),
    "map-not-ready": Kind(
        409,
        "The map is not ready",
        "A job still builds it, or has failed to. `job` is the link of that job. Wait for it; a map that failed is "
        "tried again by putting its spec again, and removed with DELETE.",
    ),
    "map-in-use": Kind(
        409,
        "Indexes are over the map",
        "The codes of these indexes are of the map: `indexes` names them. Delete them first, or leave the map: it does "
        "not expire meanwhile.",
    ),
    "index-not-found": Kind(
        404,
        "There is no such index",
        "No index has this name, or the one that had it has expired: create it with PUT, or look at the list.",
    ),
    "index-exists": Kind(
        409,
        "Another index has the name",
        "It is over another map, or is searched otherwise, or keeps something else. Delete the one that is there, or "
        "give the new one another name. Putting the same index again is no conflict.",
    ),
    "vector-not-found": Kind(
        404,
        "The index has no such vector",
        "No vector of the index has this id. Whole numbers and strings are different ids: `kind` says which is meant.",
    ),
    "job-not-found": Kind(
        404, "There is no such job", "No job has this id, or it ended more than BOCHNER_JOB_TTL seconds ago."
    ),
    "job-has-no-result": Kind(
        409,
        "The job has no result to fetch",
        "It has not ended yet, has failed or was cancelled; or what it made is at the `result` link of its record.",
    ),
    "job-has-ended": Kind(409, "The job has ended", "It cannot be cancelled any more. Its record goes by itself."),
    "precondition-failed": Kind(
        412,
        "What is there is not what the request means",
        "`If-Match` names no ETag of what is there, or `If-None-Match` names one. Nothing was changed. Look at what is "
        "there, and decide anew.",
    ),
    "range-not-satisfiable": Kind(
        416,
        "There is no such part",
        "`Range` begins behind the end of the answer. `Content-Range` tells how long that is.",
    ),
    "too-large": Kind(
        413,
        "The request passes a limit",
        "`limit` names the limit, `value` is its value, `setting` the environment variable that moves it. "
        "Send fewer rows at a time; `.npy` is shorter than JSON, and whole numbers of 8 bits shorter than float32.",
    ),
    "quota": Kind(
        507,
        "There is no room in the store",
        "`limit` names the limit, `value` is its value, `setting` the environment variable that moves it; a limit "
        "whose name begins with `key_` is that of an API key and has no setting. /v1/info says how much is kept. "
        "Delete maps or datasets, which makes room at once, or wait: ended jobs go after BOCHNER_JOB_TTL seconds. With "
        "limit `min_free_bytes` it is the disk of the private store that is full. What is stored is served as ever.",
    ),
    "unsupported-media-type": Kind(
        415,
        "The Content-Type is not one this endpoint reads",
        f"Vectors come as {' or '.join(FORMATS)}, "
        f"those of datasets also as {Parquet.media_type}; specs as application/json; "
        "either may be packed once, as `Content-Encoding: gzip` or `zstd`.",
    ),
    "not-acceptable": Kind(
        406,
        "No format in Accept can be written",
        f"Arrays are answered as {' or '.join(FORMATS)}; .npy also in a narrower dtype that Accept names, such as in "
        "`application/x-npy; dtype=float16`, if no number is too large for it.",
    ),
    "not-found": Kind(404, "There is nothing at this address", "See /docs for the addresses of this service."),
    "method-not-allowed": Kind(405, "The address does not take this method", "`Allow` lists the methods it takes."),
    "request-timeout": Kind(
        408,
        "The request did not arrive in time",
        "Its head took longer than BOCHNER_HEAD_TIMEOUT, its body longer than BOCHNER_BODY_TIMEOUT, or the client "
        "paused for BOCHNER_CLIENT_TIMEOUT or sent fewer bytes a second than BOCHNER_MIN_BODY_RATE. `limit` names "
        "which.",
    ),
    "uri-too-long": Kind(
        414,
        "The address is too long",
        "It alone is longer than BOCHNER_MAX_HEAD_BYTES. No address of this service needs to be.",
    ),
    "head-too-large": Kind(
        431,
        "The head of the request is too large",
        "Its address and its header fields are longer than BOCHNER_MAX_HEAD_BYTES.",
    ),
    "bad-request": Kind(
        400,
        "The request cannot be understood",
        "It breaks the rules of HTTP itself, or leaves in doubt where its body ends. `detail` says how.",
    ),
    "unauthorized": Kind(
        401,
        "A key is needed",
        "The service, or what was asked of it, needs a key. None came, or one that is not valid here: never was, or "
        "was revoked. Send it as `Authorization: Bearer KEY`, once. A browser may give it as the password of any name, "
        "to look at something. An operator makes a key with `bochner keys create`, an administrator with "
        "`POST /v1/keys`.",
    ),
    "forbidden": Kind(
        403,
        "The key does not suffice",
        "The role of the key does not include this call: `read` changes nothing, `write` makes and deletes maps and "
        "datasets and cancels jobs, `admin` makes and revokes keys too.",
    ),
    "misdirected": Kind(
        421,
        "The service does not go by this name",
        "The header `Host` has a name that is not one of the service, as where a page of another site has its own name "
        "lead here. BOCHNER_ALLOWED_HOSTS lists the names.",
    ),
    "key-not-found": Kind(404, "There is no such key", "No key has this id, or it was revoked: look at the list."),
    "overloaded": Kind(
        503,
        "The service has enough to do",
        "BOCHNER_MAX_REQUESTS requests are in work or waiting, BOCHNER_MAX_BUILDS maps are being built or wait to be, "
        "BOCHNER_MAX_LISTENERS clients watch jobs, their bodies take BOCHNER_MAX_BODIES_BYTES, or all of "
        "BOCHNER_MAX_CONNECTIONS are at work; or, with status 429, BOCHNER_MAX_QUEUED_JOBS jobs wait, or the key has "
        "asked more often than its rate (`key_rate`) allows. `limit` names which. Send the request again after "
        "`Retry-After` seconds.",
    ),
    "shutting-down": Kind(
        503,
        "The service is being stopped",
        "The answer was not ready BOCHNER_SHUTDOWN_TIMEOUT seconds after the service was told to end. Send the request "
        "again: another process, or the next one, serves it.",
    ),
    "store-unavailable": Kind(
        503,
        "The store does not do its part",
        "The service keeps maps and datasets in a Redis-compatible store, which does not answer, refuses to write, or "
        "cannot be trusted to keep what it gets. `detail` says which. Nothing is lost; try again after `Retry-After` "
        "seconds.",
    ),
    "store-damaged": Kind(
        503, "The store gives back something else than was kept", "An operator must look at the store; see the log."
    ),
    "newer-version": Kind(
        503,
        "It was made by a newer version",
        "A map, dataset or job was stored in a format, or hashes with a parameter stream, that this version of the "
        "service does not know; `detail` names both versions. Nothing is damaged: the version that made it can use it, "
        "and everything else is used as ever.",
    ),
    "internal-error": Kind(500, "The service failed", "This is a defect of the service. The log has the request id."),
}
