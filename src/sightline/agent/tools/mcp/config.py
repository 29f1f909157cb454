"""Files that name MCP servers, as editors and agents write them: `{"mcpServers": {name: {…}}}` or `{"servers": …}`.

A file that cannot be used is a fault with the file's name and what to do; a word in it that means nothing here is a
note. What came from the environment is never shown in either.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sightline.agent.tools.mcp.expansion import Expansion, UnfilledError
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import decode

_LISTS = ("mcpServers", "servers")
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")
_KNOWN = frozenset({"type", "transport", "command", "args", "env", "cwd", "url", "headers", "disabled", "enabled"})
_TOP = frozenset({*_LISTS, "inputs", "$schema"})
_SECRET = re.compile(r"key|token|secret|passw|auth|credential|cookie", re.IGNORECASE)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SHORTEST_SECRET = 8
"""What is shorter is taken for a word: it would be missing in answers that have nothing to do with it."""

EXAMPLE = 'Write it as {"mcpServers": {"NAME": {"command": "…", "args": ["…"]}}} or {"url": "https://…"}.'


@dataclass(frozen=True, slots=True)
class CommandServer:
    """A server that is started here and spoken to over its pipes."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path

    def __repr__(self) -> str:
        return "Command()"


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that is spoken to over HTTP."""

    url: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return "Address()"


@dataclass(frozen=True, slots=True)
class Spec:
    """One server. `hidden` must not be told to a person, `secret` not even in what its tools answer."""

    name: str
    reached: CommandServer | HttpServer
    hidden: frozenset[str] = frozenset()
    secret: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"Spec({self.name!r})"


@dataclass(frozen=True, slots=True)
class Configured:
    """The servers of a file, in its order, and what was left aside."""

    servers: tuple[Spec, ...]
    notes: tuple[str, ...] = ()


def parse_config(text: bytes, *, where: str, folder: Path, environment: Mapping[str, str]) -> Configured:
    """The servers that a file names. `where` is the file as a person knows it; commands run in `folder`."""
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
    return Configured(tuple(servers), tuple(notes))


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
    """One server as it is written."""

    def __init__(self, name: str, entry: JsonObject, where: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._name, self._entry, self._where = name, entry, where
        self._folder, self._environment = folder, environment
        self._expansion = Expansion(environment)
        self._secret: set[str] = set()

    def spec(self) -> Spec:
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
        return Spec(self._name, reached, self._expansion.values | self._secret, frozenset(self._secret))

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
            hint = "Use https: over http anybody on the way can read the headers and change the tools."
            raise self._wrong("is on another machine and not reached by https", hint)
        self._keep(parts.password or "", parts.query)
        headers = self._texts("headers")
        for name, value in headers.items():
            if not _HEADER.fullmatch(name) or not value.isprintable() or not value.isascii():
                raise self._wrong(f"has a header {name!r} that HTTP cannot carry", "Correct its name or its value.")
        return HttpServer(url, headers)

    def _texts(self, key: str) -> dict[str, str]:
        """A table of texts. What a name or a header makes a secret is kept out of results, too."""
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
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")
