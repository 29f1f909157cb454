"""The names that Codex has for the same things, read as our own.

A provider table that was written for Codex, also below `[model_providers]`, means here what it means there.
"""

from collections.abc import Mapping
from dataclasses import replace

from sightline.catalog.problem import ConfigProblem, Path, format_path, nearest, problem_at, quote_word
from sightline.catalog.toml import TomlDocument
from sightline.model.json import Json, JsonObject

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
    """The document with every synonym replaced by our own name. A synonym beside its own name is a mistake."""
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
            self._both(
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
                self._both((*origin, name), f"{format_path(path)} has both {quote_word(name)} and {quote_word(own)}")
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

    def _both(self, path: Path, message: str) -> None:
        hint = "They mean the same; keep one of them."
        self.problems.append(problem_at(self._document.place(path), path, message, hint))
