"""One-click fixes: edits that take a problem away."""

from collections.abc import Iterator

import msgspec

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Problem
from sightline.dialects.registry import dialect
from sightline.editing.draft import Draft
from sightline.editing.operations import Batch, Delete, Edit, Insert, Reset, Set, SetText
from sightline.editing.remedies import remedies
from sightline.editing.section import PartType, Section, SectionPart
from sightline.errors import Fault
from sightline.wire.pointer import covers

_DROP: dict[PartType, str] = {
    "text": "Drop the empty part",
    "tool_call": "Drop this call",
    "tool_result": "Drop this result",
    "thinking": "Drop this thinking",
    "image": "Drop this picture",
    "document": "Drop this document",
    "audio": "Drop this sound",
    "cache_breakpoint": "Drop this cache mark",
    "tool": "Drop this tool",
}
_USUAL_LIMIT = 4096
_MANY = 1_000_000


class Fix(msgspec.Struct, frozen=True):
    """What a button says, and the edits that it makes in one step."""

    label: str
    operations: tuple[Edit, ...]


def fixes_for(draft: Draft, problem: Problem, facts: Facts) -> tuple[Fix, ...]:
    """The fixes that this draft takes, the gentlest first."""
    return tuple(fix for fix in _fixes(draft, problem, facts) if _works(draft, fix))


def part_at(section: Section, pointer: str) -> SectionPart | None:
    """The part of a section that a place lies in, the innermost one."""
    holding = [part for part in section.parts if part.pointer and covers(part.pointer, pointer)]
    return max(holding, key=lambda part: len(part.pointer), default=None)


def section_of(draft: Draft, pointer: str) -> Section | None:
    """The section that a place lies in."""
    name = draft.section_at(pointer)
    return draft.section(name) if name else None


def _works(draft: Draft, fix: Fix) -> bool:
    """Whether the draft takes it and is no worse for it."""
    try:
        after = draft.with_edit(Batch(operations=fix.operations))
    except Fault:
        return False
    return after is not draft and _errors(after) <= _errors(draft)


def _errors(draft: Draft) -> int:
    if draft.request is None:
        return _MANY
    return sum(problem.severity == "error" for problem in dialect(draft.dialect).problems(draft.request))


def _fixes(draft: Draft, problem: Problem, facts: Facts) -> Iterator[Fix]:
    if draft.request is None:
        yield Fix("Back to the request as it came", (Reset(),))
        return
    for remedy in remedies(draft, problem.pointer, problem.rule, facts):
        yield Fix(remedy.label, remedy.operations)
    if problem.pointer and problem.pointer == draft.request.options.places.get("max_tokens") and facts.max_output:
        yield Fix(f"Set it to {facts.max_output}", (Set(pointer=problem.pointer, value=facts.max_output),))
    if problem.pointer == "/max_tokens":
        value = facts.max_output or _USUAL_LIMIT
        yield Fix(f"Set it to {value}", (Insert(pointer="/max_tokens", value=value),))
    section = section_of(draft, problem.pointer)
    if section is None:
        return
    part = part_at(section, problem.pointer)
    if part is None:
        yield Fix("Drop this message", (Delete(section=section.id),))
        return
    yield from _part_fixes(section, part, problem)


def _part_fixes(section: Section, part: SectionPart, problem: Problem) -> Iterator[Fix]:
    if part.type == "tool_call" and "arguments" in problem.message:
        yield Fix("Call it with {}", (SetText(section=section.id, part=part.id, text="{}"),))
    label = f"Leave out {part.name}" if part.type == "option" else _DROP.get(part.type, "Drop this part")
    yield Fix(label, (Delete(section=section.id, part=part.id),))
