"""The end of a raw reply: its words are our own, so that each of them is said exactly; the editor's are read too."""

from collections.abc import Mapping

from sightline.dialects.fields import compact, opt_str
from sightline.dialects.streaming import finish_for_content
from sightline.errors import Code, Fault
from sightline.model.events import Failed, Finished
from sightline.model.json import JsonObject
from sightline.model.reply import Finish

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
    """The end that an object tells. A word that we do not know is a stop, and is kept as the detail."""
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
    """The fields that say the same."""
    return compact({"finishReason": finish, "finishDetail": detail, "stopSequence": stop_sequence})
