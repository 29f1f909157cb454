"""What two replies must agree on: what a reader would see, without places and bookkeeping."""

from typing import Any

import msgspec

from sightline.dialects.validity import is_object
from sightline.model.reply import Reply
from sightline.wire.jsontext import decode


def essence(reply: Reply, *, usage: bool = True) -> dict[str, Any]:
    """The reply without the places that its parts had in their documents."""
    plain = msgspec.to_builtins(reply, enc_hook=lambda fault: {"code": fault.code.value})
    for name in ("dialect", "unmodelled", "created"):
        plain.pop(name, None)
    if not usage:
        plain.pop("usage", None)
    return _bare(plain)


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(arguments := value.get("arguments"), str) and is_object(arguments):
            value = {**value, "arguments": decode(arguments)}  # some dialects hold an object, not its text
        return {
            key: _bare(inner)
            for key, inner in value.items()
            if key not in ("at", "places", "finish_at", "stop_at", "logprobs_at")
            and not (key == "extras" and not inner)
        }
    if isinstance(value, (list, tuple)):
        return [_bare(item) for item in value]
    return value
