"""How each dialect spells the two things that an edit may have to write anew: a role, and a part that holds words."""

from collections.abc import Mapping

from sightline.editing.places import edit_refusal
from sightline.model.json import Json, JsonObject
from sightline.model.message import Message
from sightline.model.parts import ToolCall, ToolResult

_WORDS: Mapping[str, Json] = {role: role for role in ("system", "developer", "user", "assistant")}
ROLES: Mapping[str, Mapping[str, Json]] = {
    "openai-chat": _WORDS,
    "openai-responses": _WORDS,
    "anthropic": {"user": "user", "assistant": "assistant", "system": "system"},
    "gemini": {"user": "user", "assistant": "model"},
    "raw": {"system": 0, "user": 1, "assistant": 2},
}
"""What stands in the field `role` for each role that a message can be given."""


def text_part(name: str, role: str, text: str) -> JsonObject:
    """A part that holds these words."""
    match name:
        case "gemini":
            return {"text": text}
        case "raw":
            return {"type": 1, "text": text}
        case "openai-responses" if role == "assistant":
            return {"type": "output_text", "text": text, "annotations": []}
        case "openai-responses":
            return {"type": "input_text", "text": text}
        case _:
            return {"type": "text", "text": text}


def with_role(name: str, message: Message, item: JsonObject, role: str) -> JsonObject:
    """The members of an item that are others when somebody else says it."""
    known = ROLES[name]
    if role not in known:
        raise edit_refusal(f"no message of {name} can be given the role {role!r}", f"Known here: {', '.join(known)}.")
    if any(isinstance(part, (ToolCall, ToolResult)) for part in message.parts):
        raise edit_refusal("this has no role of its own to change", "Move its words into a message first.")
    if "role" not in item and name != "gemini":
        raise edit_refusal("this has no role of its own to change", "Only a message has one.")
    changed: JsonObject = {} if item.get("role") == known[role] else {"role": known[role]}
    content = item.get("content")
    if name == "openai-responses" and isinstance(content, list):
        respoken = [_respoken(part, role) for part in content]
        changed |= {} if respoken == content else {"content": respoken}
    return changed


def _respoken(part: Json, role: str) -> Json:
    """A text of the Responses API under the name that it has in this role."""
    if not isinstance(part, dict) or part.get("type") not in ("input_text", "output_text"):
        return part
    kind = "output_text" if role == "assistant" else "input_text"
    if part["type"] == kind:
        return part
    kept = {key: value for key, value in part.items() if key not in ("annotations", "logprobs")}
    return {**kept, "type": kind, **({"annotations": []} if role == "assistant" else {})}
