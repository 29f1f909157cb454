"""What a person can set besides providers and models: one struct for each table of the configuration file."""

from typing import Annotated, TypeAlias

import msgspec

Port: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Url: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(https?://[^\s/?#]+[^\s?#]*)?$", description="an http(s) URL")]
StoreUrl: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(postgres(ql)?://([^\s:@/]+@)?[^\s@]+)?$",
        description="a postgresql:// URL without a password (PGPASSWORD or ~/.pgpass has it)",
    ),
]
Origin: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^https?://[^\s/?#@]+$", description="an origin such as http://localhost:5173")
]


class Server(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[server]`: where Sightline listens, and which other origins may speak to it. Port 0 is any free one."""

    host: str = "127.0.0.1"
    port: Port = 7700
    allowed_origins: tuple[Origin, ...] = ()


class Ask(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[ask]`: the model and the system prompt where the command names none."""

    model: str = ""
    system: str = ""


class Local(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[local]`: the embedded model. `url` is one that is running already; 0 threads are half of the cores."""

    url: Url = ""
    threads: Count = 0
    context_window: Annotated[int, msgspec.Meta(ge=1, le=8192)] = 8192


class Network(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[network]`: certificates to trust besides the system's, and how many connections one provider may get."""

    ca_file: str = ""
    max_connections: Limit = 1000


class Store(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[store]`: where the record is kept and for how long. Without a `url` it is in the data folder; 0 is no limit."""

    url: StoreUrl = ""
    keep_days: Count = 0
    keep_mb: Count = 0


class Telemetry(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[telemetry]`: an OpenTelemetry collector that is told of every exchange; none is told of any without it.

    `content` sends what was said too. `env_headers` name the variables that hold the collector's headers.
    """

    otlp_endpoint: Url = ""
    content: bool = False
    env_headers: dict[str, str] = {}


class Settings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """All tables."""

    server: Server = Server()
    ask: Ask = Ask()
    local: Local = Local()
    network: Network = Network()
    store: Store = Store()
    telemetry: Telemetry = Telemetry()
