"""Why an answer ended, in both directions.

`STOP` is the only success besides the length limit. A filter is told from a failure: a filtered answer is an answer
that somebody cut, a failed one must never look complete. A reason that is unknown here is kept as the provider's own
word under `content_filter`, because all that is known of it is that the provider, not the model, ended the answer.
"""

from collections.abc import Mapping

from sightline.errors import Code, Fault
from sightline.model.events import Finished
from sightline.model.reply import Choice, Finish
from sightline.model.report import Report

FILTERS = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)
FAILURES = frozenset(
    {
        "IMAGE_OTHER",
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
        "NO_IMAGE",
        "OTHER",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    }
)
_CONTINUATION = "CONTINUATION"
_WORDS: Mapping[Finish, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
    "pause": "STOP",
    "error": "OTHER",
    "cancelled": "OTHER",
}


def read_finish(word: str) -> tuple[Finish, str | None]:
    """The finish of an answer that did not fail, and the provider's own word where ours is coarser."""
    if word == "STOP":
        return "stop", None
    if word == "MAX_TOKENS":
        return "length", None
    if word == _CONTINUATION:
        return "pause", word
    return "content_filter", word


def failure(word: str, message: str | None, at: str) -> Fault:
    """The fault of an answer that failed."""
    return Fault(
        Code.UPSTREAM_ERROR,
        f"{word}: {message}" if message else f"the model stopped with {word}",
        hint="The model's answer cannot be used; send the request again, or change the tools or the prompt.",
        pointer=at,
    )


def write_finish(ending: Finished | Choice, finish: Finish, report: Report) -> str:
    """The word for a finish; what it cannot say is reported."""
    at = ending.at if isinstance(ending, Finished) else ending.finish_at
    detail = ending.detail
    word = _WORDS[finish]
    if (finish == "content_filter" and detail in FILTERS) or (finish == "pause" and detail == _CONTINUATION):
        return str(detail)
    if finish in ("refusal", "pause"):
        report.lose(at, f"finish {finish!r}", f"gemini says {word}", "option")
    if detail is not None:
        report.lose(at, f"the provider's own word {detail!r}", f"gemini says {word}", "identity")
    if ending.stop_sequence is not None:
        report.lose(ending.stop_at or at, "stop sequence", "gemini does not say which one stopped it", "identity")
    return word
