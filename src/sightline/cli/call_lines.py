"""Calls and results in one or a few lines, with a note of what is left out."""

from sightline.agent.core.output import ToolOutcome, words_of
from sightline.agent.core.rounds import CallRecord
from sightline.model.json import JsonObject
from sightline.model.parts import Text
from sightline.wire.jsontext import encode

LONGEST_LINE = 160
MOST_LINES = 4

_FATES = {
    "refused": "not run, its arguments are invalid",
    "denied": "denied",
    "answered": "answered by hand",
    "cancelled": "not run",
    "limit": "not run",
    "cut": "not run, the reply was truncated",
}
_DENIED = {"hook": "denied by a hook", "rule": "denied by a rule", "nobody": "denied, no one is there to approve it"}


def call_line(name: str, arguments: JsonObject | str) -> str:
    """A call."""
    text = arguments if isinstance(arguments, str) else encode(arguments).decode()
    return f"→ {name} {clip(' '.join(text.split()))}".rstrip()


def progress_line(name: str, words: str) -> str:
    """The progress of a call."""
    return f"· {name}: {clip(' '.join(words.split()))}"


def result_lines(name: str, outcome: ToolOutcome | None, *, how: str = "") -> str:
    """The result of a call."""
    notes = [how] if how else []
    if outcome is not None and outcome.is_error and not how:
        notes.append("error")
    head = f"← {name}{f' ({notes[0]})' if notes else ''}"
    body = "" if outcome is None else fold(_whole(outcome))
    return f"{head}: {body}" if body else head


def record_lines(record: CallRecord) -> str:
    """A finished call, by its outcome."""
    how = _DENIED.get(record.denied_by or "", _FATES.get(record.fate, ""))
    return result_lines(record.name, record.outcome, how=how)


def _whole(outcome: ToolOutcome) -> str:
    """A result as text, and the number of its other parts."""
    media = sum(not isinstance(part, Text) for part in outcome.parts)
    more = f"[{media} part{'s' if media > 1 else ''} that {'are' if media > 1 else 'is'} not text]" if media else ""
    return "\n".join(filter(None, (words_of(outcome), more)))


def fold(text: str) -> str:
    """The first lines of a text, and how many are missing."""
    lines = text.strip("\n").split("\n")
    shown = [clip(line.rstrip()) for line in lines[:MOST_LINES]]
    missing = len(lines) - len(shown)
    if missing:
        shown.append(f"… {missing} more line{'s' if missing > 1 else ''}")
    return "\n  ".join(shown)


def clip(line: str, most: int = LONGEST_LINE) -> str:
    """A line, and how many of its characters are missing."""
    return line if len(line) <= most else f"{line[:most]}… {len(line) - most:,} more characters"
