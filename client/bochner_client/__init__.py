"""A client for Bochner, a service that turns vectors into kernel features and hash codes.

with bochner_client.Client("http://127.0.0.1:8000") as client:
    client.put_map("letters", spec)
    features = client.transform("letters", rows)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bochner_client.calls.vectors import Gram
from bochner_client.errors import (
    BochnerError,
    BochnerWarning,
    InvalidAnswer,
    JobFailed,
    NotModified,
    Refused,
    ServiceAway,
)
from bochner_client.jobs import AsyncJob, Job
from bochner_client.pages import AliasPage, DatasetPage, IndexPage, JobPage, MapPage, VectorPage
from bochner_client.recommendations import Recommendation
from bochner_client.records import (
    AliasRecord,
    ChangedTags,
    CreatedKey,
    DatasetRecord,
    DeletedVectors,
    Duplicates,
    IndexRecord,
    Info,
    JobError,
    JobEvent,
    JobRecord,
    KeyRecord,
    MapPreview,
    MapRecord,
    Pair,
    PlannedBands,
    Recall,
    RefusedVector,
    SearchResult,
    Upserted,
    VectorRecord,
)
from bochner_client.refusals import (
    AliasNotFound,
    ArrayNotFound,
    BadRequest,
    Conflict,
    DatasetExists,
    DatasetNotFound,
    Forbidden,
    IndexExists,
    IndexInUse,
    IndexNotFound,
    IndexNotReady,
    InternalError,
    InvalidInput,
    JobHasEnded,
    JobHasNoResult,
    JobNotFound,
    KeyNotFound,
    MapExists,
    MapInUse,
    MapNotFound,
    MapNotReady,
    MethodNotAllowed,
    Misdirected,
    NewerVersion,
    NotAcceptable,
    NotFound,
    NotReady,
    Overloaded,
    PreconditionFailed,
    QuotaExceeded,
    RequestTimeout,
    ShuttingDown,
    Starting,
    StoreDamaged,
    StoreUnavailable,
    TooLarge,
    Unauthorized,
    Unavailable,
    UnsupportedMediaType,
    VectorNotFound,
)
from bochner_client.rows import DatasetRows

if TYPE_CHECKING:
    from bochner_client.async_client import AsyncClient
    from bochner_client.client import Client
    from bochner_client.transformers import FeatureMap, HashMap

__version__ = "0.1.0"

__all__ = [
    "AliasNotFound",
    "AliasPage",
    "AliasRecord",
    "ArrayNotFound",
    "AsyncClient",
    "AsyncJob",
    "BadRequest",
    "BochnerError",
    "BochnerWarning",
    "ChangedTags",
    "Client",
    "Conflict",
    "CreatedKey",
    "DatasetExists",
    "DatasetNotFound",
    "DatasetPage",
    "DatasetRecord",
    "DatasetRows",
    "DeletedVectors",
    "Duplicates",
    "FeatureMap",
    "Forbidden",
    "Gram",
    "HashMap",
    "IndexExists",
    "IndexInUse",
    "IndexNotFound",
    "IndexNotReady",
    "IndexPage",
    "IndexRecord",
    "Info",
    "InternalError",
    "InvalidAnswer",
    "InvalidInput",
    "Job",
    "JobError",
    "JobEvent",
    "JobFailed",
    "JobHasEnded",
    "JobHasNoResult",
    "JobNotFound",
    "JobPage",
    "JobRecord",
    "KeyNotFound",
    "KeyRecord",
    "MapExists",
    "MapInUse",
    "MapNotFound",
    "MapNotReady",
    "MapPage",
    "MapPreview",
    "MapRecord",
    "MethodNotAllowed",
    "Misdirected",
    "NewerVersion",
    "NotAcceptable",
    "NotFound",
    "NotModified",
    "NotReady",
    "Overloaded",
    "Pair",
    "PlannedBands",
    "PreconditionFailed",
    "QuotaExceeded",
    "Recall",
    "Recommendation",
    "Refused",
    "RefusedVector",
    "RequestTimeout",
    "SearchResult",
    "ServiceAway",
    "ShuttingDown",
    "Starting",
    "StoreDamaged",
    "StoreUnavailable",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
    "UnsupportedMediaType",
    "Upserted",
    "VectorNotFound",
    "VectorPage",
    "VectorRecord",
]


# Imported on first use: the clients take long to import, and the service only needs the rules for tables; the
# transformers need scikit-learn.
_LATER = {"AsyncClient": "async_client", "Client": "client", "FeatureMap": "transformers", "HashMap": "transformers"}


def __getattr__(name: str) -> Any:
    """Import a client or a transformer on first use."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"bochner_client.{_LATER[name]}"), name)
    except ModuleNotFoundError as error:
        if _LATER[name] != "transformers":
            raise
        raise ImportError(f"{name} needs scikit-learn: pip install 'bochner-client[sklearn]'") from error
