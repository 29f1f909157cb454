"""Expands a request that continues a response kept by the provider into the whole conversation.

What the provider keeps cannot be seen and so cannot be edited. If the requests and replies that led here are in the
record, the conversation replaces the reference; if one is missing, a Fault says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.wire import spans
from sightline.wire.document import WireDocument
from sightline.wire.jsontext import decode, encode
from sightline.wire.sse import SseDecoder

_REFERENCE = "previous_response_id"


@dataclass(frozen=True, slots=True)
class ChainLink:
    """An earlier exchange of the conversation: the body that was sent, and the answer as it arrived, whole or
    streamed."""

    request: bytes
    reply: bytes


def previous_of(data: bytes) -> str:
    """The id of the response that a request continues; empty if there is none."""
    found = _object(data).get(_REFERENCE)
    return found if isinstance(found, str) else ""


def expand_request(data: bytes, chain: Sequence[ChainLink]) -> bytes:
    """The request as a full resend: the conversation of the chain, oldest link first, then its own input.

    The bytes of every item stay as they were sent or received.
    """
    reference = previous_of(data)
    if not reference:
        raise _refusal("this request continues no earlier response", "There is nothing to write out.")
    _check_state(data)
    items: list[bytes] = []
    expected = ""
    for number, link in enumerate(chain, 1):
        if previous_of(link.request) != expected:
            raise _refusal(
                f"link {number} of {len(chain)} goes on from {previous_of(link.request) or 'nothing'}, "
                f"not from {expected or 'the beginning'}"
            )
        _check_state(link.request)
        response, finished = _response(link.reply)
        output = response.get("output")
        if response.get("status") not in ("completed", "incomplete") or not isinstance(output, list):
            raise _refusal(f"the answer of link {number} is not whole in the record")
        # Some servers end a stream with an empty output although they streamed every item before.
        items += [*_input(link.request), *map(encode, output or finished)]
        expected = str(response.get("id", ""))
    if reference != expected:
        raise _refusal(f"the response {reference!r} is not in the record, so what it stands for is not known")
    return _with_items(WireDocument(data).remove(f"/{_REFERENCE}"), items)


def _refusal(
    message: str, hint: str = "Send the request as it is, or start the conversation again without stored state."
) -> Fault:
    return Fault(Code.INVALID_REQUEST, message, hint=hint, pointer=f"/{_REFERENCE}", status=422)


def _object(data: bytes) -> JsonObject:
    body = decode(data)
    return body if isinstance(body, dict) else {}


def _check_state(data: bytes) -> None:
    if _object(data).get("conversation") is not None:
        raise _refusal("a stored conversation is kept by the provider alone")


def _input(data: bytes) -> list[bytes]:
    """The input items of a request, each as its original bytes."""
    value = _object(data).get("input")
    if isinstance(value, list):
        layout, _ = spans.parent(data, "/input/-")
        return [data[start:stop] for start, stop in zip(layout.starts, layout.stops, strict=True)]
    return [encode(_user_message(value))] if isinstance(value, str) else []


def _user_message(text: str) -> JsonObject:
    return {"type": "message", "role": "user", "content": text}


def _response(data: bytes) -> tuple[JsonObject, list[Json]]:
    """The `response` object of an answer, and the items that a stream reported as finished."""
    if data.lstrip().startswith((b"{", b"[")):
        return _object(data), []
    decoder = SseDecoder()
    response: JsonObject = {}
    finished: list[Json] = []
    for frame in [*decoder.feed(data), *decoder.close()]:
        event = _object(frame.data) if frame.data.startswith(b"{") else {}
        kind, ended = event.get("type"), event.get("response")
        if kind == "response.output_item.done":
            finished.append(event.get("item"))
        elif kind in ("response.completed", "response.incomplete", "response.done") and isinstance(ended, dict):
            response = ended
    return response, finished


def _with_items(document: WireDocument, items: list[bytes]) -> bytes:
    """The document with these items before its own input."""
    body = document.document
    assert isinstance(body, dict)  # it had a reference
    own = body.get("input")
    if isinstance(own, str):
        document = document.set("/input", [_user_message(own)])
    elif "input" not in body:
        document = document.insert("/input", [])
    elif own is None:
        document = document.set("/input", [])
    if not items:
        return document.data
    document = document.insert("/input/0", 0)
    start, stop = spans.find(document.data, "/input/0")
    return document.data[:start] + b",".join(items) + document.data[stop:]
