"""Results as lines of JSON: a few stable fields for other programs, and the whole result, which is what is read back.

The stable fields are always there and are null where they are not known: `v`, `suite`, `case`, `target`, `trial`,
`group`, `tags`, `status`, `verdict`, `score`, `input_tokens`, `output_tokens`, `cost_usd`, `seconds`, `cached`,
`error`, `at`. Fields may be added; `v` counts up when one changes its meaning.
"""

from collections.abc import Iterable

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseResult
from sightline.model.json import JsonObject
from sightline.wire import jsontext

VERSION = 1


class ResultLines(msgspec.Struct, frozen=True):
    """`is_cut`: the last line was not whole, as after a crash, and is left out."""

    results: tuple[CaseResult, ...]
    is_cut: bool = False


def to_line(result: CaseResult) -> bytes:
    """One result in one line, with its end."""
    seen = result.observation
    fields: JsonObject = {
        "v": VERSION,
        "suite": result.suite,
        "case": result.case,
        "target": result.target,
        "trial": result.trial,
        "group": result.group,
        "tags": list(result.tags),
        "status": result.status,
        "verdict": result.score.verdict,
        "score": result.score.score,
        "input_tokens": seen.usage.input_tokens if seen.usage else None,
        "output_tokens": seen.usage.output_tokens if seen.usage else None,
        "cost_usd": seen.cost,
        "seconds": seen.seconds,
        "cached": result.cached,
        "error": seen.error,
        "at": result.at,
        "result": msgspec.to_builtins(result),
    }
    return jsontext.encode(fields) + b"\n"


def to_jsonl(results: Iterable[CaseResult]) -> bytes:
    """All of them."""
    return b"".join(map(to_line, results))


def read_jsonl(data: bytes) -> ResultLines:
    """The results of such lines. Only the last line may be cut; anything else that cannot be read is a fault."""
    *lines, rest = data.split(b"\n")
    results = [_read(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    if not rest.strip():
        return ResultLines(tuple(results))
    try:
        return ResultLines((*results, _read(rest, len(lines) + 1)))
    except Fault:
        return ResultLines(tuple(results), is_cut=True)


def _read(line: bytes, number: int) -> CaseResult:
    try:
        fields = jsontext.decode(line)
    except Fault as fault:
        raise _unreadable(number, fault.message) from None
    if not isinstance(fields, dict) or "result" not in fields:
        raise _unreadable(number, "it holds no result")
    if fields.get("v") != VERSION:
        raise _unreadable(number, f"it is of version {fields.get('v')}, and this program reads {VERSION}")
    try:
        return msgspec.convert(fields["result"], CaseResult)
    except jsontext.MISFIT as misfit:
        raise _unreadable(number, str(misfit)) from None


def _unreadable(number: int, why: str) -> Fault:
    return Fault(
        Code.USAGE,
        f"line {number} of the results cannot be read: {why}",
        hint="Export the run again, or remove the line.",
    )
