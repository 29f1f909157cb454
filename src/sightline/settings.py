"""Everything the user can configure besides providers and models: one struct per table of the configuration file."""

from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

import msgspec

from sightline.errors import Code, Fault

Port: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Allowance: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
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
TlsHost: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?$",
        description="a host such as llm.example.com, *.example.com or llm.example.com:8443",
    ),
]
BuiltinName: TypeAlias = Literal[
    "read_file", "list_files", "search_files", "write_file", "edit_file", "run_command", "local_shell", "web_search"
]


Workers: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=256)] | Literal["auto"]


class ServerSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[server]`: where Sightline listens, which other origins may call it, and how many processes serve clients. Port
    0 means any free port; `auto` means one worker per core. `max_message_mb` is the maximum size of a WebSocket
    message.

    `proxy_port` is for children of `run --tls`. `tls_hosts` are further hosts whose connections are decrypted there,
    and `tls_refused` is what happens to a host for which the client does not accept our certificate.
    """

    host: str = "127.0.0.1"
    port: Port = 7700
    allowed_origins: tuple[Origin, ...] = ()
    max_message_mb: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 64
    workers: Workers = 1
    proxy_port: Port = 0
    tls_hosts: tuple[TlsHost, ...] = ()
    tls_refused: Literal["fail", "tunnel"] = "fail"


class AskSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[ask]`: the model, the system prompt and the instructions that apply if the command names none."""

    model: str = ""
    system: str = ""
    instructions: str = ""


class LocalSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[local]`: the embedded model. `url` is a server that is already running; 0 threads means half of the cores."""

    url: Url = ""
    threads: Count = 0
    context_window: Annotated[int, msgspec.Meta(ge=1, le=8192)] = 8192


class NetworkSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[network]`: certificates to trust besides the system's, and the maximum number of connections per provider."""

    ca_file: str = ""
    max_connections: Limit = 1000


class StoreSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[store]`: where the record is kept and for how long. Without a `url` it is in the data folder; 0 means no limit.
    `fsync` is what is forced to disk to survive a crash of the machine: nothing, each stored batch, or each record
    before its client gets the last byte. `raw_body_mb` is how much is kept of each body that is passed through unread;
    of a longer body, its size and hash are kept."""

    url: StoreUrl = ""
    fsync: Literal["never", "batches", "records"] = "never"
    keep_days: Count = 0
    keep_mb: Count = 0
    raw_body_mb: Annotated[int, msgspec.Meta(ge=0, le=64)] = 8


class TelemetrySettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[telemetry]`: the OpenTelemetry collector that gets a span for every exchange. Without one nothing is exported.

    `content` also exports the content of messages. `env_headers` names the variables that hold the collector's headers.
    """

    otlp_endpoint: Url = ""
    content: bool = False
    env_headers: dict[str, str] = {}


class ExportSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[export]`: regular expressions for what `export --redact` replaces in addition to keys, addresses and names."""

    patterns: tuple[str, ...] = ()


class ChatSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[chat]`: how the chat counts and trims, where its page sets nothing else. `chars_per_token` is CPT,
    `user_request_allowance` URA, `assistant_response_allowance` the reserve for the reply, `max_trim_attempts` NTA.

    `estimation` says how tokens are counted: as the `model` does (CPT then serves models with an unpublished
    vocabulary), or by `characters` alone. `preflight_trimming` leaves pairs out before the first attempt if the prompt
    is larger than its allowance. `style_directives` are sent to every model, after the topic's system prompt.
    `reply_focus` says whether an answer switches the page from INPUT to VIEW mode: if it is `tall`, `always`, or
    `never`. Tall is more than `partial_height_threshold` times the height of the history.
    """

    chars_per_token: Annotated[float, msgspec.Meta(ge=0.5, le=20)] = 3.5
    user_request_allowance: Allowance = 100
    assistant_response_allowance: Allowance = 800
    max_trim_attempts: Annotated[int, msgspec.Meta(ge=0, le=100)] = 10
    preflight_trimming: bool = True
    estimation: Literal["model", "characters"] = "model"
    style_directives: tuple[str, ...] = ()
    reply_focus: Literal["tall", "always", "never"] = "tall"
    partial_height_threshold: Annotated[float, msgspec.Meta(ge=0.1, le=10)] = 1.0


class Toolset(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[tools.NAME]`: tools that can be given to a run, from exactly one of `python`, `mcp`, `folder` and `plugin`.

    Paths are relative to the configuration file. A folder offers the built-in tools named in `builtin`, or the
    read-only ones if it is empty. `parallel` and `allow` are patterns of tool names: which may run in parallel with
    others, and which may run without approval.
    """

    python: str = ""
    mcp: str = ""
    folder: str = ""
    plugin: str = ""
    builtin: tuple[BuiltinName, ...] = ()
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    parallel: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    hooks: str = ""

    def check(self, name: str) -> None:
        """Raise a Fault if the table does not name exactly one source of tools, or has `builtin` without a folder."""
        sources = {"python": self.python, "mcp": self.mcp, "folder": self.folder, "plugin": self.plugin}
        named = [key for key, value in sources.items() if value]
        if len(named) != 1:
            what = f"names {' and '.join(named)}" if named else "names none of python, mcp, folder and plugin"
            hint = 'Name one: python = "tools.py", mcp = "mcp.json", folder = "." or plugin = "NAME".'
            raise Fault(Code.CONFIG, f"[tools.{name}] {what}", hint=hint)
        if self.builtin and not self.folder:
            hint = 'The built-in tools work in a folder: write folder = "." in a table of its own.'
            raise Fault(Code.CONFIG, f"[tools.{name}] has builtin without folder", hint=hint)


class EvalCommand(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`cli` of `[evals.targets.NAME]`: a program that is given the question. It is started by one of `command`, a line
    for the shell, `words`, which bypass the shell, and `template`, a predefined command.

    `{PROMPT}`, `{PROMPT_FILE}`, `{OUTPUT_FILE}`, `{FILES}`, `{EVAL_ID}` and `{ATTEMPT}` are replaced by their values.
    `cwd` is relative to the folder of the repository. `env` names variables that are passed to the program although
    they hold keys.
    """

    command: str = ""
    words: tuple[str, ...] = ()
    template: Literal["", "codex", "claude"] = ""
    model: str = ""
    cwd: str = ""
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 600.0
    files_format: str = "{path}"
    env: tuple[str, ...] = ()
    healthcheck_command: str = ""
    healthcheck_url: Url = ""


class EvalTarget(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[evals.targets.NAME]`: what answers the cases of suites. Either a model of the configuration, with `toolsets` if
    it gets tools, or one of `cli`, `mock` (a fixed text) and `replay` (a filter: answers come from the record).

    `judge` is the target that judges its answers. `requests` is the maximum number of requests of a run with tools, and
    `approve` lets its tools run without approval. `file_form` is how files are written into its prompts.
    """

    model: str = ""
    toolsets: tuple[str, ...] = ()
    system: Literal["in_place", "merge_leading", "merge_all"] = "in_place"
    concurrency: Limit | None = None
    rpm: Limit | None = None
    tpm: Limit | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    seed: int | None = None
    max_tokens: Limit | None = None
    effort: str | None = None
    stream: bool = False
    cli: EvalCommand | None = None
    mock: str | None = None
    replay: str | None = None
    judge: str = ""
    requests: Limit | None = None
    approve: bool = False
    file_form: Literal["xml", "seed"] | None = None


class EvalsSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[evals]`: the folder of the suites that the page lists and writes to, relative to the configuration file, and
    the target and judge that apply if neither a command nor a suite names one. `file_form` is how files are written
    into a prompt: `xml` is <file path="…">, `seed` is === path ===."""

    folder: str = "evals"
    target: str = ""
    judge: str = ""
    file_form: Literal["xml", "seed"] = "xml"
    targets: dict[str, EvalTarget] = {}


class CapSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[[caps]]`: the most that the requests matching a filter may cost in a window, in `dollars` or in `tokens`. With
    `per`, each session, project and so on gets the whole amount.

    A request over the cap is refused, or held until a person decides. For a cap in dollars, `unpriced` is what happens
    to a request whose price is not known.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="a name of letters and digits")]
    filter: str = ""
    per: tuple[Literal["session", "project", "client", "key", "model", "provider", "tag"], ...] = ()
    window: Literal["day", "month", "always"] = "day"
    dollars: Annotated[float, msgspec.Meta(gt=0)] | None = None
    tokens: Limit | None = None
    action: Literal["refuse", "hold"] = "refuse"
    unpriced: Literal["refuse", "pass"] = "refuse"


PluginName: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
        description="a file of plugins/ such as redact.py, or the name of an entry point",
    ),
]


class PluginSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """`[plugins]`: the plug-ins to load, and no others: files in the folder `plugins` beside the configuration file,
    and entry points of installed packages. A plug-in call that takes longer than `timeout_s` is stopped."""

    use: tuple[PluginName, ...] = ()
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 10.0


class Settings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """All tables of the configuration file."""

    server: ServerSettings = ServerSettings()
    ask: AskSettings = AskSettings()
    local: LocalSettings = LocalSettings()
    network: NetworkSettings = NetworkSettings()
    store: StoreSettings = StoreSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    export: ExportSettings = ExportSettings()
    chat: ChatSettings = ChatSettings()
    tools: dict[str, Toolset] = {}
    evals: EvalsSettings = EvalsSettings()
    caps: tuple[CapSettings, ...] = ()
    plugins: PluginSettings = PluginSettings()

    def mistakes(self) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
        """Mistakes that the types of the values do not catch, each as its place, what is wrong, and what to do."""
        for name, toolset in self.tools.items():
            try:
                toolset.check(name)
            except Fault as fault:
                yield ("tools", name), fault.message, fault.hint
        names = [cap.name for cap in self.caps]
        for number, cap in enumerate(self.caps):
            if (cap.dollars is None) == (cap.tokens is None):
                what = "sets neither dollars nor tokens" if cap.dollars is None else "sets both dollars and tokens"
                yield ("caps", number), f"the cap {cap.name} {what}", "Set one of them; for both, write two caps."
            if cap.name in names[:number]:
                yield ("caps", number), f"two caps are called {cap.name}", "Give each a name of its own."
