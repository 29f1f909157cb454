"""Limits for one server: seconds, bytes and counts."""

import ipaddress
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import certifi
import msgspec

from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import decode

if TYPE_CHECKING:
    from sightline.agent.tools.mcp.mcp_tools import McpTools


MEGABYTE = 1_000_000


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one server.

    `start_s` is for start, handshake and list together, `list_s` for reading the list again, `call_s` for one call,
    `close_s` for leaving on its own. `spacing_s` is the least time between two readings of the list. `message` is the
    size of one message in bytes; the agent loop truncates an answer further for the model.
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


def _of_the_system() -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not context.get_ca_certs():
        context.load_verify_locations(certifi.where())  # the system has no certificates of its own
    return context


def _directly(_url: str) -> None:
    """The default: no proxy. The environment's proxy settings are not used, because they would also divert servers on
    this machine."""


@dataclass(frozen=True, slots=True)
class McpNetwork:
    """`context` returns the TLS context of a connection. `proxy` returns the URL of the proxy for an address and its
    authorization header, which may be empty; None for a direct connection."""

    context: Callable[[], ssl.SSLContext] = _of_the_system
    proxy: Callable[[str], tuple[str, str] | None] = _directly


MASK = "***"
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_SHORTEST = 4
"""Shorter values occur in too many texts by chance to be masked."""


class UnfilledError(ValueError):
    """A variable that is not set. The message names it and shows no value."""


class Expansion:
    """Expands variables and remembers their values."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._values: set[str] = set()

    def expand(self, text: str) -> str:
        """Expand every variable in a text. Raises `UnfilledError` if one is not set."""
        return _VARIABLE.sub(self._value, text)

    @property
    def values(self) -> frozenset[str]:
        """The values to mask."""
        return frozenset(self._values)

    def _value(self, found: re.Match[str]) -> str:
        name = _NAME.fullmatch(found[1])
        if name is None:
            raise UnfilledError(f"{found[0]} is no variable of the environment")
        value = self._environment.get(name[1]) or name[2]
        if value is None:
            raise UnfilledError(f"the variable {name[1]} is not set")
        if name[1] in self._environment and len(value) >= _SHORTEST:
            self._values.add(value)
        return value


def mask_values(text: str, values: frozenset[str]) -> str:
    """Mask these values in a text, the longest first because one may be part of another."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


_LISTS = ("mcpServers", "servers")
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")
_KNOWN = frozenset({"type", "transport", "command", "args", "env", "cwd", "url", "headers", "disabled", "enabled"})
_TOP = frozenset({*_LISTS, "inputs", "$schema"})
_SECRET = re.compile(r"key|token|secret|passw|auth|credential|cookie", re.IGNORECASE)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SHORTEST_SECRET = 8
"""Shorter values are not treated as secrets: masking them would damage unrelated answers."""

EXAMPLE = 'Write it as {"mcpServers": {"NAME": {"command": "…", "args": ["…"]}}} or {"url": "https://…"}.'


@dataclass(frozen=True, slots=True)
class CommandServer:
    """A server that is a local process."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path

    def __repr__(self) -> str:
        return "Command()"


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that is reached over HTTP."""

    url: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return "Address()"


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One server. `hidden` values must not be shown to a person, `secret` values are also masked in its tools'
    answers."""

    name: str
    reached: CommandServer | HttpServer
    hidden: frozenset[str] = frozenset()
    secret: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"ServerSpec({self.name!r})"


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The servers of a file in order, and notes on what was ignored."""

    servers: tuple[ServerSpec, ...]
    notes: tuple[str, ...] = ()


def parse_config(text: bytes, *, where: str, folder: Path, environment: Mapping[str, str]) -> ServerConfig:
    """Parse the servers of a file. `where` is the file's name for people; commands run in `folder`."""
    document = _document(text, where)
    key = next((each for each in _LISTS if each in document), None)
    entries = document.get(key) if key else None
    if not isinstance(entries, dict) or not entries:
        raise Fault(Code.CONFIG, f"{where} names no MCP servers", hint=EXAMPLE)
    notes = [f"{where}: {each!r} means nothing here and is ignored" for each in document if each not in _TOP]
    servers = []
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise Fault(Code.CONFIG, f"{where}: the MCP server {name!r} is not an object", hint=EXAMPLE)
        if entry.get("disabled") is True or entry.get("enabled") is False:
            notes.append(f"the MCP server {name!r} is switched off in {where}")
            continue
        ignored = [each for each in entry if each not in _KNOWN]
        notes += [f"the MCP server {name!r}: {each!r} means nothing here and is ignored" for each in ignored]
        servers.append(_Entry(name, entry, where, folder, environment).spec())
    return ServerConfig(tuple(servers), tuple(notes))


def _document(text: bytes, where: str) -> JsonObject:
    try:
        document = decode(text)
    except Fault as fault:
        raise Fault(
            Code.CONFIG,
            f"{where} is not JSON: {fault.message}",
            hint="Correct the file at that place. Comments and commas behind a last value are not JSON.",
        ) from fault
    if not isinstance(document, dict):
        raise Fault(Code.CONFIG, f"{where} is not a JSON object", hint=EXAMPLE)
    return document


class _Entry:
    """Parses one server's entry."""

    def __init__(self, name: str, entry: JsonObject, where: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._name, self._entry, self._where = name, entry, where
        self._folder, self._environment = folder, environment
        self._expansion = Expansion(environment)
        self._secret: set[str] = set()

    def spec(self) -> ServerSpec:
        if not self._name.strip():
            raise self._wrong("has no name", "Give it a short name: its tools are called NAME__TOOL.")
        kind = self._entry.get("type", self._entry.get("transport"))
        if kind == "sse":
            hint = 'Use its streamable HTTP address with "type": "http" (most servers have one, often /mcp).'
            raise self._wrong("is reached by the old SSE transport, which is not supported", hint)
        if kind not in (None, "stdio", *_HTTP):
            raise self._wrong(f"has the unknown type {kind!r}", 'Say "type": "stdio" or "type": "http".')
        if ("command" in self._entry) is ("url" in self._entry):
            raise self._wrong("needs either a command or a url", EXAMPLE)
        if kind is not None and (kind == "stdio") is not ("command" in self._entry):
            raise self._wrong(f"is of type {kind!r} and has no {'command' if kind == 'stdio' else 'url'}", EXAMPLE)
        reached = self._command() if "command" in self._entry else self._address()
        return ServerSpec(self._name, reached, self._expansion.values | self._secret, frozenset(self._secret))

    def _command(self) -> CommandServer:
        command = self._text(self._entry["command"], "command")
        args = self._entry.get("args", [])
        if not isinstance(args, list):
            raise self._wrong("has args that are no list", 'Write "args": ["one", "two"].')
        words = (command, *(self._text(each, f"args[{index}]") for index, each in enumerate(args)))
        own = self._texts("env")
        folder = self._folder / self._text(self._entry.get("cwd", "."), "cwd")
        return CommandServer(words, own, folder)

    def _address(self) -> HttpServer:
        written = self._entry["url"]
        url = self._text(written, "url")
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            parts, host = urlsplit(""), ""
        if parts.scheme not in ("http", "https") or not host or not url.isascii() or not url.isprintable():
            raise self._wrong(f"has the url {written!r}, which is none", 'Write it as "https://host/path".')
        if parts.scheme == "http" and not is_here(host):
            hint = "Use https: over http anyone on the network path can read the headers and change the tools."
            raise self._wrong("is on another machine and not reached by https", hint)
        self._keep(parts.password or "", parts.query)
        headers = self._texts("headers")
        for name, value in headers.items():
            if not _HEADER.fullmatch(name) or not value.isprintable() or not value.isascii():
                raise self._wrong(f"has a header {name!r} that HTTP cannot carry", "Correct its name or its value.")
        return HttpServer(url, headers)

    def _texts(self, key: str) -> dict[str, str]:
        """A table of texts. Values whose name or header says that they are secret are masked in results too."""
        table = self._entry.get(key, {})
        if not isinstance(table, dict):
            raise self._wrong(f"has {key} that is no table", f'Write "{key}": {{"NAME": "value"}}.')
        found = {}
        for name, value in table.items():
            found[name] = self._text(value, f"{key}[{name!r}]")
            if key == "headers" or _SECRET.search(name):
                self._keep(found[name], *found[name].split())
        return found

    def _keep(self, *values: str) -> None:
        self._secret.update(value for value in values if len(value) >= _SHORTEST_SECRET)

    def _text(self, value: Json, place: str) -> str:
        if isinstance(value, bool | int | float):
            value = str(value).lower() if isinstance(value, bool) else str(value)
        if not isinstance(value, str):
            raise self._wrong(f"has a {place} that is no text", EXAMPLE)
        try:
            text = self._expansion.expand(value)
        except UnfilledError as error:
            hint = "Set the variable, or give it a default: ${NAME:-default}. Only the environment is filled in."
            raise self._wrong(f"cannot be set up: {error} ({place})", hint) from error
        if "\0" in text:
            raise self._wrong(f"has a {place} with a null character", "Remove it.")
        return text

    def _wrong(self, message: str, hint: str) -> Fault:
        return Fault(Code.CONFIG, f"{self._where}: the MCP server {self._name!r} {message}", hint=hint)


def is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")


async def open_mcp_file(
    file: Path, *, environment: Mapping[str, str], call_timeout: float = USUAL.call_s, network: McpNetwork | None = None
) -> "McpTools":
    """Open the servers that a file names; commands run in the file's folder."""
    text, folder = _read(file)
    return await open_mcp_text(
        text, where=str(file), folder=folder, environment=environment, call_timeout=call_timeout, network=network
    )


async def open_mcp_text(
    text: bytes,
    *,
    where: str,
    folder: Path,
    environment: Mapping[str, str],
    call_timeout: float = USUAL.call_s,
    bounds: ServerLimits = USUAL,
    network: McpNetwork | None = None,
) -> "McpTools":
    """Open the servers that a text names. `where` is the text's name for people."""
    found = parse_config(text, where=where, folder=folder, environment=environment)
    # Loading the SDK takes most of a second.
    from sightline.agent.tools.mcp.mcp_tools import McpTools

    tools = McpTools(found, msgspec.structs.replace(bounds, call_s=call_timeout), environment, network or McpNetwork())
    has_started = False
    try:
        await tools.start()
        has_started = True
    finally:
        if not has_started:
            await tools.close()
    return tools


def _read(file: Path) -> tuple[bytes, Path]:
    try:
        return file.read_bytes(), file.absolute().parent
    except OSError as error:
        hint = "Name a file with MCP servers in it, such as .mcp.json."
        raise Fault(Code.CONFIG, f"{file} cannot be read: {error.strerror}", hint=hint) from error
