"""Stored replies: how the APIs that store a reply for its client name it, list it and delete it.

The Responses API stores a response unless its request says otherwise; Chat Completions stores a completion if its
request asks for it. https://platform.openai.com/docs/api-reference/responses,
https://platform.openai.com/docs/api-reference/chat
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from sightline.dialects.fields import objects_in
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import MISFIT, decode

_STORED_HERE: Final = re.compile(r"(?:resp_|chatcmpl-)(x_\w+)")
_FEWEST, _DEFAULT_LIMIT, _MOST = 1, 20, 100


class _StoreField(msgspec.Struct):
    store: bool | None = None


_STORE_DECODER: Final = msgspec.json.Decoder(_StoreField)


def _store_in(body: bytes) -> bool | None:
    """The field `store` of a request. Raises a DecodeError if the body is none."""
    try:
        return _STORE_DECODER.decode(body).store
    except msgspec.DecodeError as error:
        try:  # a text with half a surrogate pair is legal JSON, which the decoder refuses
            return msgspec.convert(decode(body), _StoreField).store
        except (Fault, *MISFIT):
            raise error from None


@dataclass(frozen=True, slots=True)
class StoredApi:
    """What the API of a dialect offers for stored replies.

    `prefix` begins the id of a reply that is stored here; with `by_default`, a request need not ask for storage. `noun`
    is what the API calls a reply, `deleted` the name of the object that confirms a deletion. `children` is the path of
    the list of what was sent, and `list_children` makes that list from a request body and the id of its reply. With
    `can_change`, the `metadata` can be set later and all replies can be listed; otherwise a running reply can be
    cancelled.
    """

    prefix: str
    by_default: bool
    noun: str
    deleted: str
    children: str
    list_children: Callable[[JsonObject, str], list[JsonObject]]
    can_change: bool

    def wants(self, body: bytes) -> bool:
        """Whether the reply to a request with this body should be stored."""
        try:
            store = _store_in(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        return self.by_default if store is None else store

    def missing(self, name: str) -> Fault:
        """The fault for a reply that does not exist or belongs to another client: the message does not say which."""
        hint = "Ask with the credential with which it was made; it may also have been deleted."
        return Fault(Code.INVALID_REQUEST, f"{self.noun} with id '{name}' not found.", hint=hint, status=404)

    def deletion(self, name: str) -> JsonObject:
        """The response body for a client whose reply was deleted."""
        return {"id": name, "object": self.deleted, "deleted": True}


@dataclass(frozen=True, slots=True)
class StoredCall:
    """What a path asks of stored replies: the one called `name`, or all if it is empty; `rest` is the path after it."""

    dialect: str
    name: str
    rest: str


def exchange_in(name: str) -> str:
    """The exchange whose record holds the reply with this id; empty if a provider stores it."""
    found = _STORED_HERE.fullmatch(name)
    return found[1] if found else ""


def list_page(items: Sequence[JsonObject], query: Mapping[str, str], *, is_newest_first: bool) -> JsonObject:
    """The page of `items`, which are oldest first, that a query asks for with `limit`, `order` and `after`."""
    limit = query.get("limit", str(_DEFAULT_LIMIT))
    if not limit.isdecimal() or not _FEWEST <= int(limit) <= _MOST:
        hint = f"Give a number from {_FEWEST} to {_MOST}."
        raise Fault(Code.INVALID_REQUEST, f"the limit {limit[:20]!r} is not valid", hint=hint, status=400)
    ordered = list(items)
    if query.get("order", "desc" if is_newest_first else "asc") == "desc":
        ordered.reverse()
    if after := query.get("after", ""):
        place = next((n for n, item in enumerate(ordered) if item.get("id") == after), None)
        if place is None:
            hint = "Give the last_id of the page before."
            raise Fault(Code.INVALID_REQUEST, f"there is no item {after[:80]!r}", hint=hint, status=400)
        ordered = ordered[place + 1 :]
    page: list[Json] = [*ordered[: int(limit)]]
    return {
        "object": "list",
        "data": page,
        "first_id": ordered[0]["id"] if page else None,
        "last_id": ordered[len(page) - 1]["id"] if page else None,
        "has_more": len(ordered) > len(page),
    }


# --- what was sent ----------------------------------------------------------------------------------


def _input_items(body: JsonObject, name: str) -> list[JsonObject]:
    """The items of a Responses request, each with an id."""
    given = body.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    return [_item(each, f"{name}_{n}") for n, each in objects_in(given)]


def _item(item: JsonObject, name: str) -> JsonObject:
    item = {"id": f"msg_{name}", "type": "message", **item}
    text = item.get("content")
    if item["type"] == "message" and isinstance(text, str):
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        item["content"] = [{"type": kind, "text": text, **({"annotations": []} if kind == "output_text" else {})}]
    return item if item["type"] != "message" else {"status": "completed", **item}


def _messages(body: JsonObject, name: str) -> list[JsonObject]:
    """The messages of a Chat Completions request, each with an id; content in parts is listed beside its text."""
    listed: list[JsonObject] = []
    for number, message in objects_in(body.get("messages")):
        parts = message.get("content")
        texts: list[Json] = [part.get("text") for _, part in objects_in(parts) if part.get("type") == "text"]
        text: Json = "".join(str(each) for each in texts) or None
        listed.append({
            "name": None, **message, "id": f"{name}-{number}",
            "content": text if isinstance(parts, list) else parts,
            "content_parts": parts if isinstance(parts, list) else None,
        })  # fmt: skip
    return listed


RESPONSES = StoredApi("resp_", True, "Response", "response", "input_items", _input_items, can_change=False)
COMPLETIONS = StoredApi(
    "chatcmpl-", False, "Chat completion", "chat.completion.deleted", "messages", _messages, can_change=True
)
