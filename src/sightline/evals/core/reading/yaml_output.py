"""Values as YAML that a person would write: plain words where they are safe, literal blocks for long text."""

import json
import re
from typing import NamedTuple

from sightline.model.json import Json

_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9 _./()-]*[A-Za-z0-9_./()-])?")
_RESERVED = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_UNPRINTABLE = re.compile(r"[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029]")
STEP = "  "


class YamlLines(NamedTuple):
    """What stands on the line of its key, and the lines below it, indented as if the key stood at the margin."""

    header: str
    body: tuple[str, ...] = ()


def write_yaml(value: Json) -> YamlLines:
    """A value in block style."""
    match value:
        case str() if is_block(value):
            lines = value.removesuffix("\n").split("\n")
            return YamlLines(
                "|" if value.endswith("\n") else "|-", tuple(STEP + line if line else "" for line in lines)
            )
        case dict() if value:
            return YamlLines("", tuple(STEP + line for line in _members(value)))
        case list() if value:
            return YamlLines("", tuple(STEP + line for line in _items(value)))
        case _:
            return YamlLines(inline(value))


def inline(value: Json) -> str:
    """A value in one line; what is not a plain word is JSON, which is YAML as well."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNPRINTABLE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def in_flow(value: Json) -> str:
    """A value within brackets: JSON alone, for there a plain word could have a comma or a brace in it."""
    return _UNPRINTABLE.sub(
        lambda match: json.dumps(match[0])[1:-1], json.dumps(value, ensure_ascii=False, allow_nan=False)
    )


def is_block(text: str) -> bool:
    """Whether a literal block can hold the text exactly: several lines, of which the first begins with a letter."""
    return (
        "\n" in text
        and not text[0].isspace()
        and not text.endswith("\n\n")
        and bool(text.strip())
        and not _UNPRINTABLE.search(text)
    )


def _members(value: dict[str, Json]) -> list[str]:
    lines: list[str] = []
    for key, each in value.items():
        header, body = write_yaml(each)
        lines += [f"{inline(key)}:{' ' if header else ''}{header}", *body]
    return lines


def _items(value: list[Json]) -> list[str]:
    lines: list[str] = []
    for each in value:
        first, rest = item_lines(each)
        lines += [f"- {first}", *rest]
    return lines


def item_lines(value: Json) -> YamlLines:
    """A value behind a dash: a mapping or a list begins on the same line."""
    header, body = write_yaml(value)
    return YamlLines(header, body) if header else YamlLines(body[0].removeprefix(STEP), body[1:])
