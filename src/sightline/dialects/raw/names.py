"""Words, numbers and error bodies of the raw schema that more than one module here needs.

The words for how a reply ended are our own, so that each is exact; the editor's are read too. An error is `{"error":
{"code", "message"}}` with our own codes as the words.
"""

from collections.abc import Mapping

from sightline.dialects.fault_codes import status_of
from sightline.dialects.faults import provider_fault, reclassify
from sightline.dialects.fields import compact, opt_str, word_of
from sightline.dialects.streaming import finish_for_content
from sightline.errors import Code, Fault
from sightline.model.events import Failed, Finished
from sightline.model.json import Json, JsonObject
from sightline.model.reply import Finish
from sightline.model.request import Role

NAME = "raw"

ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
"""The roles by their number."""

ROLE_NUMBERS: Mapping[Role, int] = {"system": 0, "developer": 0, "user": 1, "assistant": 2, "tool": 3}

IMAGE, TEXT, OPAQUE, CACHE = 0, 1, 2, 3
"""The kinds of parts by their number."""

DETAILS = frozenset({"low", "high"})
"""The levels of detail at which the model can be asked to look at an image."""

SIGHTLINE = "sightline"
"""Marks what we put beside the schema because it has no field for it: an opaque part, or a member of a known one."""

OPTIONS = "requestOptions"

FIRST_CALL = 1 << 20
"""A message has its calls after its content, so the number of a call is higher than that of any other part."""

MOST_CHOICES = 1024
"""The number of a choice is below this, so that a broken one cannot ask for endless empty choices."""

MARKER = "statefulMarker"
"""Identifies what the provider stores of the conversation, in a reply and in a delta."""

FIELDS = frozenset({"finishReason", "finishDetail", "stopSequence"})

_WORDS: Mapping[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "refusal",
    "pause": "pause",
    "function_call": "tool_calls",
    "DONE": "stop",
}
_FAILURES: Mapping[str, Code] = {"error": Code.UPSTREAM_ERROR, "cancelled": Code.CANCELLED}


def read_finish(holder: JsonObject, choice: int, at: str, *, has_calls: bool) -> Finished | Failed:
    """The end that an object reports. An unknown word is a stop, and is kept as the detail."""
    word = opt_str(holder, "finishReason", at) or "stop"
    if word in _FAILURES:
        return Failed(Fault(_FAILURES[word], f"the reply ended with {word!r} and no message"))
    finish = _WORDS.get(word, "stop")
    detail = opt_str(holder, "finishDetail", at)
    if detail is None and finish != word:
        detail = word
    stop = opt_str(holder, "stopSequence", at)
    return Finished(
        finish_for_content(finish, has_calls=has_calls),
        choice,
        detail,
        stop,
        at=f"{at}/finishReason",
        stop_at="" if stop is None else f"{at}/stopSequence",
    )


def write_finish(finish: Finish | None, detail: str | None, stop_sequence: str | None) -> JsonObject:
    """The fields for this finish."""
    return compact({"finishReason": finish, "finishDetail": detail, "stopSequence": stop_sequence})


_CODES: Mapping[str, Code] = {code.value: code for code in Code}


def read_error(status: int, body: Json, headers: Mapping[str, str]) -> Fault:
    """The fault of an error body; a body of another shape gives a fault too, with the text that it contains."""
    error = body.get("error") if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return provider_fault(status, error if isinstance(error, str) else "", details=body, headers=headers)
    word, words = error.get("code"), (error.get("code"), error.get("type"))
    fault = provider_fault(status, word_of(error, "message"), words=words, details=error, headers=headers)
    if isinstance(word, str) and word in _CODES:
        reclassify(fault, _CODES[word])
    return fault


def write_error(fault: Fault) -> tuple[int, JsonObject]:
    """The status and body of a fault."""
    return status_of(fault), {"error": error_object(fault)}


def error_object(fault: Fault) -> JsonObject:
    """The object that describes the error, in a body or in a stream."""
    return {"code": fault.code.value, "message": fault.message}
