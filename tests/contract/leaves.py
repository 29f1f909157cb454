"""The leaves of a JSON document: where they stand, and what another value there would be."""

import copy
from collections.abc import Iterator

from sightline.model.json import Json
from sightline.wire.pointer import join, parse_pointer


def leaves(document: Json, at: str = "") -> Iterator[tuple[str, Json]]:
    """Every string, number and boolean with its pointer."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from leaves(value, join(at, key))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from leaves(value, join(at, index))
    elif document is not None:
        yield at, document


def with_other_leaf(document: Json, pointer: str) -> Json:
    """The same document with another value of the same type at this place."""
    changed = copy.deepcopy(document)
    holder = changed
    *parents, last = parse_pointer(pointer)
    for token in parents:
        holder = holder[int(token)] if isinstance(holder, list) else holder[token]
    key = int(last) if isinstance(holder, list) else last
    holder[key] = _other(holder[key])
    return changed


def _other(value: Json) -> Json:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    # Base64 stays base64, JSON text stays JSON text, and a word becomes another word.
    if value.startswith("{") and value.endswith("}"):
        return '{"mutated": true}'
    return value + "AAAA" if value.endswith("=") else "mutated" + value
