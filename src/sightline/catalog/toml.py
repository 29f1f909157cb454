"""Parses TOML text into a tree whose keys know their lines, and accepts Codex's names for the same settings.

`tomllib` parses the text but keeps no lines, so a second pass over the valid text notes the line of each key, only when
a line is needed. A provider table written for Codex, also below `[model_providers]`, means the same here.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from sightline.catalog.problem import ConfigLocation, ConfigProblem, Path, format_path, nearest, problem_at, quote_word
from sightline.model.json import Json, JsonObject

DEPTH = 32
"""How many levels of nesting a document may have; our own tables have five."""

_LINE = re.compile(r"line (\d+), column")
# No possessive groups: early versions of 3.11 match them incorrectly. The alternatives are mutually exclusive, so
# nothing backtracks.
_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}\n#]*")


@dataclass(frozen=True, slots=True)
class TomlText:
    """The name and the text of a file. `builtin` tells Sightline's own tables from what the user wrote."""

    file: str
    text: str
    builtin: bool = False


@dataclass(frozen=True)
class TomlDocument:
    """A text as a tree. `moved` maps paths of the tree to the paths that the file itself has for them."""

    source: TomlText
    tree: JsonObject
    moved: Mapping[Path, Path] = field(default_factory=dict)

    @property
    def builtin(self) -> bool:
        """Whether it is one of Sightline's own tables."""
        return self.source.builtin

    @cached_property
    def lines(self) -> Mapping[Path, int]:
        """The line of each key, of each table's header and of each element of a list, counted from 1."""
        return lines_of(self.source.text)

    def place(self, path: Path) -> ConfigLocation:
        """The line of the value at this path, or of the nearest table around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.moved:
                path = self.moved[path[:length]] + path[length:]
                break
        while path and path not in self.lines:
            path = path[:-1]
        return ConfigLocation(self.source.file, self.lines.get(path, 1))


def parse_toml(source: TomlText) -> TomlDocument | ConfigProblem:
    """The text as a document, or the mistake in it. Documents are never changed, so our own are parsed once."""
    return _parse_once(source) if source.builtin else _parse(source)


def _parse(source: TomlText) -> TomlDocument | ConfigProblem:
    try:
        tree = tomllib.loads(source.text.removeprefix("\ufeff"))
    except RecursionError:
        return _too_deep(source)
    except tomllib.TOMLDecodeError as error:
        words, _, where = str(error).rpartition(" (at ")
        line = _LINE.match(where)
        last = source.text.count("\n") + 1
        hint = "The file has to be valid TOML: see https://toml.io."
        return ConfigProblem(source.file, int(line[1]) if line else last, "", f"{words[:1].lower()}{words[1:]}", hint)
    except ValueError:
        return ConfigProblem(source.file, 1, "", "a number has more digits than can be read", "Write a smaller number.")
    return _too_deep(source) if _is_deeper(tree, DEPTH) else TomlDocument(source, tree)


_parse_once = cache(_parse)


def _too_deep(source: TomlText) -> ConfigProblem:
    hint = "No table of a configuration goes that deep; see docs/reference/configuration.md."
    return ConfigProblem(source.file, 1, "", f"tables and lists are nested more than {DEPTH} levels deep", hint)


def _is_deeper(tree: JsonObject, depth: int) -> bool:
    level: list[object] = [tree]
    for _ in range(depth):
        below: list[object] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        level = below
    return any(isinstance(value, dict | list) for value in level)


def lines_of(text: str) -> Mapping[Path, int]:
    """The lines of a text that is valid TOML."""
    walk = _Walk(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    walk.document()
    return walk.lines


class _Walk:
    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._text = text
        self._at = 0
        self._ends = [each.start() for each in re.finditer("\n", text)]
        self._elements: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._assignment(table)
            self._skip(_BLANK)

    def _skip(self, what: re.Pattern[str]) -> str:
        found = what.match(self._text, self._at)
        assert found is not None  # each pattern matches what valid TOML has at that place
        self._at = found.end()
        return found[0]

    def _line(self) -> int:
        return bisect_right(self._ends, self._at - 1) + 1

    def _note(self, path: Path, start: int, line: int) -> None:
        for length in range(start + 1, len(path)):
            self.lines.setdefault(path[:length], line)
        self.lines[path] = line

    def _header(self) -> Path:
        line = self._line()
        brackets = 2 if self._text.startswith("[[", self._at) else 1
        self._at += brackets
        path: Path = ()
        for step in self._key():
            if path in self._elements:
                path = (*path, self._elements[path] - 1)
            path = (*path, step)
        self._at += brackets
        if brackets == 2:
            self.lines.setdefault(path, line)
            self._elements[path] = self._elements.get(path, 0) + 1
            path = (*path, self._elements[path] - 1)
        self._note(path, 0, line)
        return path

    def _key(self) -> list[str]:
        steps = []
        while True:
            self._skip(_SPACE)
            if self._text[self._at] in "\"'":
                steps.append(tomllib.loads(f"key = {self._skip(_STRING)}")["key"])
            else:
                steps.append(self._skip(_BARE_KEY))
            self._skip(_SPACE)
            if self._text[self._at] != ".":
                return steps
            self._at += 1

    def _assignment(self, table: Path) -> None:
        line = self._line()
        path = (*table, *self._key())
        self._note(path, len(table), line)
        self._at += 1
        self._skip(_SPACE)
        self._value(path)

    def _value(self, path: Path) -> None:
        opening = self._text[self._at]
        if opening in "\"'":
            self._skip(_STRING)
        elif opening in "[{":
            self._members(path, "]" if opening == "[" else "}")
        else:
            self._skip(_SCALAR)

    def _members(self, path: Path, closing: str) -> None:
        self._at += 1
        self._skip(_BLANK)
        count = 0
        while self._text[self._at] != closing:
            if closing == "}":
                self._assignment(path)
            else:
                self.lines[*path, count] = self._line()
                self._value((*path, count))
            count += 1
            self._skip(_BLANK)
            if self._text[self._at] == ",":
                self._at += 1
                self._skip(_BLANK)
        self._at += 1


TABLES: Mapping[str, str] = {"model_providers": "providers"}

KEYS: Mapping[str, Mapping[str, str]] = {
    "providers": {
        "name": "title",
        "env_key": "key_env",
        "env_key_instructions": "key_help",
        "wire_api": "dialect",
        "query_params": "query",
        "http_headers": "headers",
        "env_http_headers": "env_headers",
    },
    "families": {"family": "title"},
}

WIRE_APIS: Mapping[str, str] = {"responses": "openai-responses", "chat": "openai-chat"}


def own_names(document: TomlDocument) -> tuple[TomlDocument, list[ConfigProblem]]:
    """The document with every synonym replaced by our own name, and the problems. A synonym beside our own name is
    one."""
    renaming = _Renaming(document)
    return replace(document, tree=renaming.tree(), moved=renaming.moved), renaming.problems


class _Renaming:
    def __init__(self, document: TomlDocument) -> None:
        self.moved: dict[Path, Path] = {}
        self.problems: list[ConfigProblem] = []
        self._document = document

    def tree(self) -> JsonObject:
        tree = dict(self._document.tree)
        for synonym, own in TABLES.items():
            moved = tree.pop(synonym, None)
            if isinstance(moved, dict):
                tree[own] = self._merge_synonym(synonym, moved, own, tree.get(own, {}))
        for table, keys in KEYS.items():
            entries = tree.get(table)
            if isinstance(entries, dict):
                tree[table] = {name: self._rename_keys((table, name), entry, keys) for name, entry in entries.items()}
        return tree

    def _merge_synonym(self, synonym: str, moved: JsonObject, own: str, present: Json) -> Json:
        if not isinstance(present, dict):
            return present
        self.moved.update({(own, name): (synonym, name) for name in moved if name not in present})
        if not present:
            self.moved[own,] = (synonym,)
        for name in moved.keys() & present.keys():
            self._report_duplicate(
                (synonym, name), f"{format_path((synonym, name))} and {format_path((own, name))} are the same table"
            )
        return {**present, **{name: table for name, table in moved.items() if name not in present}}

    def _rename_keys(self, path: Path, entry: Json, keys: Mapping[str, str]) -> Json:
        if not isinstance(entry, dict):
            return entry
        renamed: JsonObject = {}
        origin = self.moved.get(path, path)
        for name, value in entry.items():
            own = keys.get(name, name)
            if own != name and own in entry:
                self._report_duplicate(
                    (*origin, name), f"{format_path(path)} has both {quote_word(name)} and {quote_word(own)}"
                )
                continue
            if own != name:
                self.moved[*path, own] = (*origin, name)
            renamed[own] = self._dialect((*origin, name), value) if name == "wire_api" and own != name else value
        return renamed

    def _dialect(self, path: Path, value: Json) -> Json:
        if not isinstance(value, str):
            return value
        if value.lower() not in WIRE_APIS:
            message = (
                f"{format_path(path)} must be one of {', '.join(map(quote_word, WIRE_APIS))}, not {quote_word(value)}"
            )
            self.problems.append(problem_at(self._document.place(path), path, message, nearest(value, WIRE_APIS)))
            return "openai-chat"
        return WIRE_APIS[value.lower()]

    def _report_duplicate(self, path: Path, message: str) -> None:
        hint = "They mean the same; keep one of them."
        self.problems.append(problem_at(self._document.place(path), path, message, hint))
