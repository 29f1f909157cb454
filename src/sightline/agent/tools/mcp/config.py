"""The MCP servers that a file configures, with variables expanded from the environment, and the limits of each
server."""

import ipaddress
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias, cast
from urllib.parse import urlsplit

import certifi
import msgspec
from msgspec import inspect

from sightline.catalog.problem import ConfigLocation, ConfigProblem, format_path, problem_at, quote_word
from sightline.catalog.problem import Path as ConfigPath
from sightline.catalog.reading import REST, TypedReader, key
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.wire import pointer, spans
from sightline.wire.jsontext import decode

if TYPE_CHECKING:
    from sightline.agent.tools.mcp.mcp_tools import McpTools


MEGABYTE = 1_000_000


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one server.

    `start_s` is for start, handshake and list together, `list_s` for reading the list again, `call_s` for one call,
    `close_s` for exiting on its own. `spacing_s` is the minimum time between two readings of the list. `message` is the
    maximum size of a message in bytes; the agent loop truncates answers further for the model.
    """

    start_s: float = 30.0
    list_s: float = 30.0
    call_s: float = 60.0
    close_s: float = 2.0
    notice_s: float = 5.0
    spacing_s: float = 1.0
    message: int = 16 * MEGABYTE
    pages: int = 100
    tools: int = 512
    schema: int = 100_000
    levels: int = 64
    description: int = 4_000
    questions: int = 32
    restarts: int = 3
    reopenings: int = 10
    reopenings_s: float = 10.0


USUAL = ServerLimits()


def _system_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not context.get_ca_certs():
        context.load_verify_locations(certifi.where())  # the system has no certificates of its own
    return context


@dataclass(frozen=True, slots=True)
class McpNetwork:
    """How remote servers are reached. `context` returns the TLS context of a connection. `proxy` returns the URL of the
    proxy for an address and its authorization header, which may be empty; None for a direct connection. The default is
    no proxy, whatever the environment says, because its settings would also divert servers on this machine."""

    context: Callable[[], ssl.SSLContext] = _system_context
    proxy: Callable[[str], tuple[str, str] | None] = lambda _url: None


@dataclass(frozen=True, slots=True)
class McpContext:
    """What servers are opened with: the variables that their file may name, their limits, and how remote ones are
    reached."""

    environment: Mapping[str, str]
    limits: ServerLimits = USUAL
    network: McpNetwork = McpNetwork()


MASK = "***"
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_SHORTEST = 4
"""Shorter values occur in too many texts by chance to be masked."""


class UnfilledError(ValueError):
    """A variable that is not set. The message names it and shows no value."""


class Expansion:
    """Expands variables and remembers their values, which are to be masked."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.values: set[str] = set()

    def expand(self, text: str) -> str:
        """Expand every variable in a text. Raises `UnfilledError` if one is not set."""
        return _VARIABLE.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        name = _NAME.fullmatch(found[1])
        if name is None:
            raise UnfilledError(f"{found[0]} is not an environment variable")
        value = self._environment.get(name[1]) or name[2]
        if value is None:
            raise UnfilledError(f"the variable {name[1]} is not set")
        if name[1] in self._environment and len(value) >= _SHORTEST:
            self.values.add(value)
        return value


def mask_values(text: str, values: frozenset[str]) -> str:
    """Mask these values in a text, the longest first because one may be part of another."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")
_SECRET = re.compile(r"key|token|secret|passw|auth|credential|cookie", re.IGNORECASE)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SHORTEST_SECRET = 8
"""Shorter values are not treated as secrets: masking them would damage unrelated answers."""

EXAMPLE = 'Write it as {"mcpServers": {"NAME": {"command": "…", "args": ["…"]}}} or {"url": "https://…"}.'


@dataclass(frozen=True, slots=True)
class CommandServer:
    """A server that is a local process."""

    words: tuple[str, ...] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    folder: Path = field(repr=False)


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that is reached over HTTP."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One server. `hidden` values must not be shown to a person, `secret` values are also masked in its tools'
    answers."""

    name: str
    reached: CommandServer | HttpServer
    hidden: frozenset[str] = field(default=frozenset(), repr=False)
    secret: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The servers of a file in order, and notes on what was ignored."""

    servers: tuple[ServerSpec, ...]
    notes: tuple[str, ...] = ()


# Files of other programs have numbers and booleans where a command line or a variable has text.
_Text: TypeAlias = Annotated[str | int | float | bool, key(hint=EXAMPLE, description="text")]


class _ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar[str] = EXAMPLE

    type: Annotated[str | None, key(aliases=("transport",), first_wins=True)] = None
    command: _Text | None = None
    args: Annotated[tuple[_Text, ...], key(hint='Write "args": ["one", "two"].')] = ()
    env: Annotated[dict[str, _Text], key(hint='Write "env": {"NAME": "value"}.')] = {}
    cwd: _Text = "."
    url: _Text | None = None
    headers: Annotated[dict[str, _Text], key(hint='Write "headers": {"NAME": "value"}.')] = {}
    disabled: Json = None
    enabled: Json = None
    others: Annotated[dict[str, Json], REST] = {}


class _McpFile(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar[str] = EXAMPLE

    # Each entry is read separately: one that is switched off may have mistakes.
    servers: Annotated[dict[str, Json], key(aliases=("servers",), first_wins=True, hint=EXAMPLE)] = msgspec.field(
        name="mcpServers"
    )
    inputs: Json = None
    schema: Json = msgspec.field(name="$schema", default=None)
    others: Annotated[dict[str, Json], REST] = {}


class _ConfigReader(TypedReader):
    mapping = "an object"

    def __init__(self, text: bytes, where: str) -> None:
        self._text, self._where = text, where
        self.problems: list[ConfigProblem] = []

    def report(self, path: ConfigPath, message: str, hint: str, *, is_key: bool = False) -> None:
        line = self._text.count(b"\n", 0, spans.find(self._text, pointer.join("", *path)).start) + 1
        self.problems.append(problem_at(ConfigLocation(self._where, line), path, message, hint))

    def subject(self, path: ConfigPath, kind: inspect.Type) -> str:
        return format_path(path) or "the file"


def parse_config(text: bytes, *, where: str, folder: Path, environment: Mapping[str, str]) -> ServerConfig:
    """Parse the servers of a file. `where` is the file's name for people; commands run in `folder`.

    Raises one fault for all mistakes of the file.
    """
    try:
        document = decode(text)
    except Fault as fault:
        hint = "Correct the file at that place. Comments and commas behind a last value are not JSON."
        raise Fault(Code.CONFIG, f"{where} is {fault.message}", hint=hint) from fault
    reader = _ConfigReader(text, where)
    file = reader.read(document, _McpFile)
    notes, servers = [], []
    if file is not None:
        notes = [f"{where}: {each!r} means nothing here and is ignored" for each in file.others]
        top = "mcpServers" if "mcpServers" in cast(JsonObject, document) else "servers"
        if not file.servers:
            reader.report((top,), f"{top} names no MCP servers", EXAMPLE)
        for name, entry in file.servers.items():
            if isinstance(entry, dict) and (entry.get("disabled") is True or entry.get("enabled") is False):
                notes.append(f"the MCP server {name!r} is switched off in {where}")
                continue
            known = len(reader.problems)
            read = reader.read(entry, _ServerEntry, (top, name))
            if read is not None and len(reader.problems) == known:
                notes += [
                    f"the MCP server {name!r}: {each!r} means nothing here and is ignored" for each in read.others
                ]
                servers += _Entry((top, name), read, reader, folder, Expansion(environment)).spec()
    if reader.problems:
        first, *others = reader.problems
        hint = "\n".join([first.hint, *(f"Also: {each.text}" for each in others)])
        raise Fault(Code.CONFIG, first.text, hint=hint, details=[each.text for each in reader.problems])
    return ServerConfig(tuple(servers), tuple(notes))


@dataclass(slots=True)
class _Entry:
    """Builds a server from an entry whose types are valid. A file with any problem is refused as a whole, so after a
    problem has been reported the values no longer matter."""

    path: tuple[str, str]
    entry: _ServerEntry
    reader: _ConfigReader
    folder: Path
    expansion: Expansion
    secret: set[str] = field(default_factory=set)

    def spec(self) -> list[ServerSpec]:
        """The server; empty if it is unclear what kind of server is meant."""
        entry, kind, name = self.entry, self.entry.type, self.path[1]
        if not name.strip():
            self._report("the server has no name", "Give it a short name: its tools are called NAME__TOOL.")
        if kind == "sse":
            hint = 'Use its streamable HTTP address with "type": "http" (most servers have one, often /mcp).'
            self._report("the old SSE transport is not supported", hint)
        elif kind not in (None, "stdio", *_HTTP):
            self._report(f"the type {quote_word(kind)} is unknown", 'Write "type": "stdio" or "type": "http".')
        elif (entry.command is None) is (entry.url is None):
            self._report("needs either a command or a url", EXAMPLE)
        elif kind is not None and (kind == "stdio") is (entry.command is None):
            self._report(f"is of type {kind!r} and has no {'command' if kind == 'stdio' else 'url'}", EXAMPLE)
        else:
            reached = self._address(entry.url) if entry.url is not None else self._command(entry.command or "")
            hidden = frozenset(self.expansion.values | self.secret)
            return [ServerSpec(name, reached, hidden, frozenset(self.secret))]
        return []

    def _command(self, command: _Text) -> CommandServer:
        args = (self._expand(each, "args", index) for index, each in enumerate(self.entry.args))
        folder = self.folder / self._expand(self.entry.cwd, "cwd")
        return CommandServer((self._expand(command, "command"), *args), self._table("env", self.entry.env), folder)

    def _address(self, written: _Text) -> HttpServer:
        url = self._expand(written, "url")
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            parts, host = urlsplit(""), ""
        if parts.scheme not in ("http", "https") or not host or not url.isascii() or not url.isprintable():
            self._report(f"the url {written!r} is none", 'Write it as "https://host/path".', "url")
        elif parts.scheme == "http" and not is_here(host):
            hint = "Use https: over http anyone on the network path can read the headers and change the tools."
            self._report("is on another machine and not reached by https", hint, "url")
        self._keep(parts.password or "", parts.query)
        headers = self._table("headers", self.entry.headers)
        for name, value in headers.items():
            if not _HEADER.fullmatch(name) or not value.isprintable() or not value.isascii():
                self._report("HTTP cannot carry this header", "Correct its name or its value.", "headers", name)
        return HttpServer(url, headers)

    def _table(self, key: str, table: Mapping[str, _Text]) -> dict[str, str]:
        """A table of texts. Values whose name suggests a secret, and all headers, are masked in results too."""
        found = {}
        for name, value in table.items():
            found[name] = self._expand(value, key, name)
            if key == "headers" or _SECRET.search(name):
                self._keep(found[name], *found[name].split())
        return found

    def _keep(self, *values: str) -> None:
        self.secret.update(value for value in values if len(value) >= _SHORTEST_SECRET)

    def _expand(self, value: _Text, *place: str | int) -> str:
        try:
            text = self.expansion.expand(str(value).lower() if isinstance(value, bool) else str(value))
        except UnfilledError as error:
            hint = "Set the variable, or give it a default: ${NAME:-default}. Only the environment is filled in."
            self._report(str(error), hint, *place)
            return ""
        if "\0" in text:
            self._report("there is a null character in it", "Remove it.", *place)
        return text

    def _report(self, message: str, hint: str, *place: str | int) -> None:
        path = (*self.path, *place)
        self.reader.report(path, f"{format_path(path)}: {message}", hint)


def is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")


async def open_mcp_file(file: Path, context: McpContext) -> "McpTools":
    """Open the servers that a file names; commands run in the file's folder."""
    found = _read_config(file, context.environment)
    # Importing the SDK takes most of a second.
    from sightline.agent.tools.mcp.mcp_tools import McpTools

    tools = McpTools(found, context)
    has_started = False
    try:
        await tools.start()
        has_started = True
    finally:
        if not has_started:
            await tools.close()
    return tools


def _read_config(file: Path, environment: Mapping[str, str]) -> ServerConfig:
    try:
        text = file.read_bytes()
    except OSError as error:
        hint = "Name a file with MCP servers in it, such as .mcp.json."
        raise Fault(Code.CONFIG, f"{file} cannot be read: {error.strerror}", hint=hint) from error
    return parse_config(text, where=str(file), folder=file.absolute().parent, environment=environment)
