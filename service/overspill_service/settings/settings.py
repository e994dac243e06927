"""The settings: frozen, checked, and documented in their declarations."""

from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field
from overspill.wire import DEFAULT_TTL, is_loopback

from overspill_service.settings.addresses import Network, hosts_of, networks_of, parse_address
from overspill_service.settings.data_directory import data_directory
from overspill_service.settings.units import BYTES, LONGEST_TTL, SECONDS

OWN_CATALOG: Final = "sqlite:"
"""The catalog of this machine, in `data`, which is used if no setting names one."""


class Settings(Struct, frozen=True, kw_only=True):
    listen: Annotated[str, Meta(description="HOST:PORT to listen on; port 0 picks a free port")] = (
        "127.0.0.1:8750"
    )
    hosts: Annotated[
        str,
        Meta(
            description="host names that requests may be sent to, comma-separated "
            "(empty: any; on loopback only localhost and loopback addresses)"
        ),
    ] = ""
    tls_certificate: Annotated[
        Path | None,
        Meta(description="PEM file of a certificate with its chain; turns on https (TLS 1.2 or later)"),
    ] = None
    tls_key: Annotated[
        Path | None, Meta(description="PEM file of the certificate's private key (empty: in tls_certificate)")
    ] = None
    trusted_proxies: Annotated[
        str,
        Meta(
            description="addresses and networks of proxies, comma-separated, that may say which address "
            "a client has (empty: none)"
        ),
    ] = ""
    client_address_header: Annotated[
        Literal["x-forwarded-for", "forwarded"],
        Meta(description="header in which trusted proxies add the address of their client"),
    ] = "x-forwarded-for"
    require_tls: Annotated[
        bool, Meta(description="refuse to reach Redis or S3 without TLS, except on loopback")
    ] = False
    store: Annotated[
        str,
        Meta(
            description="the object store: s3://bucket/prefix?endpoint=…&sse=…, file:///folder or memory: "
            "(empty: a folder in `data`)"
        ),
    ] = ""
    catalog: Annotated[
        str,
        Meta(
            description="the catalog: redis://…, rediss://…, redis+sentinel://…, redis+cluster://… "
            "or sqlite:///file"
        ),
    ] = OWN_CATALOG
    data: Annotated[Path, Meta(description="directory of the embedded store and catalog")] = field(
        default_factory=data_directory
    )
    workers: Annotated[int, Meta(ge=1, le=256, description="number of processes that share the port")] = 1
    tenants: Annotated[Path | None, Meta(description="TOML file of tenants and key hashes")] = None
    anonymous: Annotated[
        bool | None,
        Meta(
            description="true: anyone who reaches the service needs no key and sees everything. The service "
            "remembers this until it is set to false, or until the first key is made"
        ),
    ] = None
    key_secret: Annotated[
        str, Meta(description="secret that keys are hashed with; the same on every replica")
    ] = ""
    previous_key_secret: Annotated[
        str, Meta(description="former key_secret; its keys stay valid while clients get new ones")
    ] = ""
    jwt_issuer: Annotated[
        str, Meta(description="issuer (`iss`) whose tokens are accepted instead of keys (empty: none)")
    ] = ""
    jwt_audience: Annotated[str, Meta(description="audience (`aud`) that a token must be for")] = "overspill"
    jwt_keys: Annotated[
        str, Meta(description="the issuer's public keys (JWKS): a file, or an https:// URL")
    ] = ""
    jwt_tenant_claim: Annotated[str, Meta(description="claim that names the tenant")] = "tenant"
    jwt_scopes_claim: Annotated[
        str, Meta(description="claim with the scopes: words in a text, or a list of them")
    ] = "scope"
    jwt_session_claim: Annotated[
        str, Meta(description="claim with the only session that the token may use, if it has one")
    ] = "session"
    metrics_from: Annotated[
        str,
        Meta(
            description="addresses and networks, comma-separated, that may read /metrics without a key "
            "(empty: every reader needs a key of scope fleet)"
        ),
    ] = ""
    level: Annotated[int, Meta(ge=1, le=19, description="zstd level of stored frames")] = 3
    max_capture_size: Annotated[int, Meta(ge=1, description="maximum bytes of one capture", extra=BYTES)] = (
        10 * 2**30
    )
    max_stored_size: Annotated[
        int, Meta(ge=0, description="maximum stored bytes of a tenant (0: no limit)", extra=BYTES)
    ] = 100 * 2**30
    max_content_size: Annotated[
        int,
        Meta(
            ge=0,
            description="maximum content bytes of a tenant, before compression (0: no limit)",
            extra=BYTES,
        ),
    ] = 2**40
    max_metadata_size: Annotated[
        int,
        Meta(
            ge=0,
            description="maximum bytes that the entries of a tenant take in the catalog (0: no limit)",
            extra=BYTES,
        ),
    ] = 256 * 2**20
    max_captures: Annotated[int, Meta(ge=0, description="maximum captures of a tenant (0: no limit)")] = 0
    default_ttl: Annotated[
        int,
        Meta(ge=1, description="seconds that a capture is kept if the client does not say", extra=SECONDS),
    ] = DEFAULT_TTL
    max_ttl: Annotated[
        int, Meta(ge=1, le=LONGEST_TTL, description="maximum seconds that a capture is kept", extra=SECONDS)
    ] = 90 * 24 * 3600
    redaction: Annotated[
        Literal["off", "mask", "tag", "refuse"],
        Meta(
            description="secrets in stored content. off: keep; mask: replace with stars; tag: replace with "
            "their kind; refuse: refuse the content"
        ),
    ] = "off"
    max_uploads: Annotated[
        int,
        Meta(
            ge=1, description="maximum uploads at once in one process; one tenant gets at most half of them"
        ),
    ] = 64
    max_connections: Annotated[
        int,
        Meta(
            ge=0,
            description="maximum client connections to one process (0: as many as the limit of open files "
            "allows); one address gets at most half of them, a trusted proxy all",
        ),
    ] = 4096
    max_request_rate: Annotated[
        int,
        Meta(
            ge=0,
            description="maximum requests a second of one tenant, to all replicas together (0: no limit); "
            "twice as many may come at once",
        ),
    ] = 1000
    max_key_share: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="maximum percentage of its tenant's max_request_rate that one key may use while "
            "other keys of the tenant are in use (100: all)",
        ),
    ] = 50
    answer_lines: Annotated[int, Meta(ge=1, description="maximum lines of one bounded read")] = 1000
    answer_bytes: Annotated[
        int, Meta(ge=256, description="maximum bytes of one bounded read", extra=BYTES)
    ] = 64 * 1024
    scan_seconds: Annotated[
        float, Meta(gt=0, description="maximum seconds that one grep or summary scans", extra=SECONDS)
    ] = 10.0
    max_scan_cpu: Annotated[
        int,
        Meta(
            ge=0,
            description="maximum seconds of CPU time a minute for greps and summaries of one tenant, on all "
            "replicas together (0: no limit)",
            extra=SECONDS,
        ),
    ] = 60
    idle_timeout: Annotated[
        float, Meta(gt=0, description="seconds to wait for the next bytes of an upload", extra=SECONDS)
    ] = 60.0
    min_upload_rate: Annotated[
        int,
        Meta(
            ge=0,
            description="minimum average bytes a second of an upload. It counts once the service has waited "
            "idle_timeout in total for the upload (0: no limit)",
            extra=BYTES,
        ),
    ] = 1024
    upload_timeout: Annotated[
        float,
        Meta(ge=0, description="maximum seconds that one upload may take (0: no limit)", extra=SECONDS),
    ] = 6 * 3600.0
    write_timeout: Annotated[
        float,
        Meta(
            gt=0,
            description="seconds after which a read is cut off if its client accepts no byte",
            extra=SECONDS,
        ),
    ] = 60.0
    memory: Annotated[
        int,
        Meta(
            ge=0,
            description="maximum bytes of memory for uploads and reads in one process "
            "(0: half of the available memory; otherwise at least 32MiB)",
            extra=BYTES,
        ),
    ] = 0
    live_timeout: Annotated[
        float,
        Meta(
            gt=0,
            description="seconds after which a live capture becomes partial if its producer sends nothing",
            extra=SECONDS,
        ),
    ] = 300.0
    live_flush_seconds: Annotated[
        float,
        Meta(
            gt=0,
            description="seconds after which accepted bytes of a live capture go to the object store; longer "
            "if the capture has many segments",
            extra=SECONDS,
        ),
    ] = 5.0
    sweep_interval: Annotated[
        float, Meta(ge=0, description="seconds between sweeps (0: never)", extra=SECONDS)
    ] = 300.0
    orphan_age: Annotated[
        float,
        Meta(
            ge=0,
            description="seconds after its last segment when an unfinished upload becomes an orphan; "
            "while serving, at least an hour",
            extra=SECONDS,
        ),
    ] = 24 * 3600.0
    drain_delay: Annotated[
        float,
        Meta(
            ge=0,
            description="seconds for which a stopping service accepts connections while /readyz says no",
            extra=SECONDS,
        ),
    ] = 0.0
    grace: Annotated[
        float,
        Meta(
            ge=0,
            description="maximum seconds that a stopping service waits for running requests",
            extra=SECONDS,
        ),
    ] = 30.0
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="lowest level that is logged")
    ] = "info"
    log_format: Annotated[Literal["text", "json"], Meta(description="text for people, json for machines")] = (
        "text"
    )

    audit_log: Annotated[
        str,
        Meta(
            description="where to log each change and each refusal: a file, syslog: or "
            "syslog://host:port (empty: nowhere)"
        ),
    ] = ""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of `listen`."""
        return parse_address(self.listen)

    @property
    def trusted_networks(self) -> tuple[Network, ...]:
        """The networks of `trusted_proxies`. Raises `ValueError`."""
        return networks_of(self.trusted_proxies)

    @property
    def scraping_networks(self) -> tuple[Network, ...]:
        """The networks of `metrics_from`. Raises `ValueError`."""
        return networks_of(self.metrics_from)

    @property
    def answered_hosts(self) -> frozenset[str] | None:
        """The host names that requests may be sent to, besides loopback's; None if any name is allowed.

        Raises `ValueError`.
        """
        names = hosts_of(self.hosts)
        return names if names or self.is_loopback else None

    @property
    def key_secrets(self) -> tuple[str, ...]:
        """The secrets that keys may be hashed with, the current one first."""
        return (self.key_secret, self.previous_key_secret) if self.previous_key_secret else (self.key_secret,)

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.address[0])
