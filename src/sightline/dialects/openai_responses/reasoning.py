"""Reasoning items: a summary, sometimes the reasoning itself, and the seal, which is bound to the item's id."""

import msgspec

from sightline.dialects.fields import as_object, opt_list, opt_str, rest
from sightline.dialects.openai_responses.names import NAME, REDACTED, UNSIGNED
from sightline.dialects.signatures import unwrap, wrap
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Thinking

_ITEM = frozenset({"type", "id", "summary", "content", "encrypted_content"})


def read_reasoning(item: JsonObject, at: str) -> Thinking:
    """The item as thinking. Pieces that could not be written back as they are stay among the extras."""
    summary = pieces_of(item, "summary", at)
    content = pieces_of(item, "content", at)
    signature, signed_by, bound = read_seal(item, at)
    thinking = Thinking(
        "\n\n".join(content) or "\n\n".join(summary),
        tuple(summary),
        id=None if bound == REDACTED else bound,
        signature=signature,
        signed_by=signed_by or None,
        redacted=bound == REDACTED,
        at=at,
        extras=rest(item, _ITEM),
    )
    body = reasoning_pieces(thinking, own=True)
    unlike = {key: item[key] for key in ("summary", "content") if item.get(key) and item[key] != body.get(key)}
    if item.get("encrypted_content") == "":  # so does llama.cpp say that there is none
        unlike["encrypted_content"] = ""
    return msgspec.structs.replace(thinking, extras={**thinking.extras, **unlike}) if unlike else thinking


def pieces_of(item: JsonObject, key: str, at: str) -> list[str]:
    """The texts of a summary or of a content."""
    place = f"{at}/{key}"
    return [
        opt_str(as_object(piece, f"{place}/{index}"), "text", f"{place}/{index}") or ""
        for index, piece in enumerate(opt_list(item, key, at))
    ]


def read_seal(item: JsonObject, at: str) -> tuple[str | None, str, str | None]:
    """The encrypted reasoning, the dialect that made it, and what it is bound to: the item itself if it is our own."""
    sealed, item_id = opt_str(item, "encrypted_content", at), opt_str(item, "id", at)
    if not sealed:
        return None, NAME, item_id
    signature, signed_by, bound = unwrap(sealed, NAME)
    return signature, signed_by, bound or item_id if signed_by == NAME else bound


def write_seal(signature: str | None, signed_by: str | None, bound: str | None, item_id: str) -> str | None:
    """What `encrypted_content` holds: our own seal as it is, any other wrapped so that the next turn can tell.

    Our own seal is wrapped too where it became known when the item already had another id than it is bound to.
    """
    if signed_by == NAME and bound in (None, item_id):
        return signature
    return wrap(signature, signed_by or UNSIGNED, bound)


def reasoning_pieces(thinking: Thinking, *, own: bool) -> JsonObject:
    """The `summary`, and the `content` where there is more to read; foreign words are shown as a summary."""
    summary = thinking.summary if own or thinking.summary else tuple(filter(None, (thinking.text,)))
    pieces: list[Json] = [{"type": "summary_text", "text": text} for text in summary]
    document: JsonObject = {"summary": pieces}
    if thinking.text != "\n\n".join(summary):
        document["content"] = [{"type": "reasoning_text", "text": thinking.text}]
    return document
