"""An HTTP request before its secrets are filled in, so that it can be shown, printed and recorded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote

import msgspec

from sightline.errors import Code, Fault


@dataclass(frozen=True, slots=True)
class Variable:
    """A value from the environment, and the text around it. An `optional` one is left out if it is not set; `help` says
    how to get the value."""

    name: str
    prefix: str = ""
    suffix: str = ""
    optional: bool = False
    help: str = ""


TemplateValue: TypeAlias = str | Variable


class HttpRequest(msgspec.Struct, frozen=True):
    """What is written to the socket, including secrets. Its repr shows none of them.

    A request that `is_passed_on` is a client's, and does not identify itself as ours.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    is_passed_on: bool = False

    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {self.url.partition('?')[0]}, {len(self.body)} bytes)"

    def with_body(self, body: bytes) -> "HttpRequest":
        """The same request with another body."""
        return HttpRequest(self.method, self.url, self.headers, body, self.is_passed_on)


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """An HTTP request, with variables for values that are secret or known only to the machine that sends it."""

    method: str
    url: TemplateValue
    headers: tuple[tuple[str, TemplateValue], ...]
    body: bytes
    is_passed_on: bool = False

    def fill(self, environment: Mapping[str, str]) -> HttpRequest:
        """The request with the values of all variables filled in. Raises a Fault if a required variable is not set."""
        headers = [(name, _value(value, environment, Code.AUTH)) for name, value in self.headers]
        return HttpRequest(
            self.method,
            _address(self.url, environment),
            tuple((name, value) for name, value in headers if value is not None),
            self.body,
            self.is_passed_on,
        )


def _address(url: TemplateValue, environment: Mapping[str, str]) -> str:
    value = _value(url, environment, Code.CONFIG) or ""
    if isinstance(url, Variable) and not value.lower().startswith(("http://", "https://")):
        hint = "An address begins with https:// or http://."
        raise Fault(Code.CONFIG, f"the variable {url.name} is not an address", hint=f"{hint} {url.help}".strip())
    return value


def _value(template: TemplateValue, environment: Mapping[str, str], code: Code) -> str | None:
    if isinstance(template, str):
        return template
    value = environment.get(template.name, "").strip()
    if not value:
        if template.optional:
            return None
        hint = f"Set {template.name} in the environment. {template.help}".strip()
        raise Fault(code, f"the variable {template.name} is not set", hint=hint)
    if not value.isprintable():  # the value is a secret and is not shown
        hint = f"Set {template.name} anew, without line breaks. {template.help}".strip()
        raise Fault(code, f"the variable {template.name} holds characters that no header can carry", hint=hint)
    if template.suffix.startswith("/"):
        value = value.rstrip("/")
    return f"{template.prefix}{value}{template.suffix}"


_SEPARATOR = re.compile(r"[/\\]")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\]")
_DOTS = frozenset({".", ".."})
_MOST_CODINGS = 4
"""A path that is percent-encoded more often than this is suspicious."""


def can_stray(path: str) -> bool:
    """Whether a server could resolve this path to a different one.

    That is possible if it has a dot segment, a backslash or a control character, plain or percent-encoded, once or
    repeatedly: proxies and servers differ in how often they decode, and some treat a backslash as a slash and ignore
    what follows a semicolon.
    """
    for _ in range(_MOST_CODINGS):
        if _UNSAFE.search(path) or any(part.partition(";")[0] in _DOTS for part in _SEPARATOR.split(path)):
            return True
        plain = unquote(path)
        if plain == path:
            return False
        path = plain
    return True
