"""An HTTP request before its secrets are put in, so that it can be shown, printed and recorded as it is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote

import msgspec

from sightline.errors import Code, Fault


@dataclass(frozen=True, slots=True)
class Variable:
    """A value from the environment, and what stands around it. An `optional` one is left out where it is not set;
    `help` says how to come by the value."""

    name: str
    prefix: str = ""
    suffix: str = ""
    optional: bool = False
    help: str = ""


TemplateValue: TypeAlias = str | Variable


class HttpRequest(msgspec.Struct, frozen=True):
    """What goes to the socket, secrets and all. Its repr shows none of them.

    One that `is_passed_on` is a client's, and does not say that it is ours.
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
    """One HTTP request, with variables where the values are secrets or known only to the machine that sends it."""

    method: str
    url: TemplateValue
    headers: tuple[tuple[str, TemplateValue], ...]
    body: bytes
    is_passed_on: bool = False

    def fill(self, environment: Mapping[str, str]) -> HttpRequest:
        """The request with every variable's value in its place."""
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
"""A path that is percent-encoded more often than this hides something."""


def can_stray(path: str) -> bool:
    """Whether a server could take this path for another one than it seems to be.

    That is so where it has a dot segment, a backslash or a control character, as it stands or percent-encoded, once or
    several times over: proxies and servers differ in how often they decode, and some take a backslash for a slash and
    pass over what follows a semicolon.
    """
    for _ in range(_MOST_CODINGS):
        if _UNSAFE.search(path) or any(part.partition(";")[0] in _DOTS for part in _SEPARATOR.split(path)):
            return True
        plain = unquote(path)
        if plain == path:
            return False
        path = plain
    return True
