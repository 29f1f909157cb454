"""Tool results where most APIs want them: directly behind the turn that made the calls."""

import msgspec

from sightline.model.message import Message
from sightline.model.parts import Part, ToolCall, ToolResult
from sightline.model.report import Report


def with_answers(turns: tuple[Message, ...], report: Report, dialect: str) -> tuple[Message, ...]:
    """The turns with every late result moved behind its call, whoever spoke in between; each move is reported."""
    late, ends = _late(turns)
    if not late:
        return turns
    moved = {id(part) for parts in late.values() for part in parts}
    for part in (part for parts in late.values() for part in parts):
        report.lose(part.at, "place of a tool result", f"{dialect} wants it directly after the call", "content")
    owners = {ends[owner]: owner for owner in late}
    out: list[Message] = []
    for index, turn in enumerate(turns):
        kept = tuple(part for part in turn.parts if id(part) not in moved)
        if kept or not turn.parts:
            out.append(turn if len(kept) == len(turn.parts) else msgspec.structs.replace(turn, parts=kept))
        if index in owners:
            _answer(out, tuple(late[owners[index]]))
    return tuple(out)


def _late(turns: tuple[Message, ...]) -> tuple[dict[int, list[Part]], dict[int, int]]:
    """The results that came late, by the turn that they answer, and where the answers of each turn end."""
    late: dict[int, list[Part]] = {}
    ends: dict[int, int] = {}
    owner_of: dict[str, int] = {}
    asking: int | None = None
    for index, turn in enumerate(turns):
        results = [part for part in turn.parts if isinstance(part, ToolResult)]
        if results and asking is not None:
            ends[asking] = index
        elif not results:
            asking = None
        for part in results:
            owner = owner_of.pop(part.id, None)
            if owner is not None and owner != asking:
                late.setdefault(owner, []).append(part)
        calls = [part.id for part in turn.parts if isinstance(part, ToolCall) and part.id]
        if calls:
            asking = index
            ends[index] = index
            owner_of.update(dict.fromkeys(calls, index))
    return late, ends


def _answer(out: list[Message], parts: tuple[Part, ...]) -> None:
    """Put results behind what stands there, in one message with the results that are there already."""
    if out[-1].role == "tool":
        out[-1] = msgspec.structs.replace(out[-1], parts=(*out[-1].parts, *parts))
    else:
        out.append(Message("tool", parts, at=parts[0].at))
