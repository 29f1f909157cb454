"""Whether a draft can be sent: what its API would refuse, what the model cannot take, and what would mend it.

What the client's own request already had is never in the way: what it sent may always be sent as it came.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Problem
from sightline.dialects.registry import dialect
from sightline.dialects.validity import is_object
from sightline.editing.draft import Draft
from sightline.editing.fixes import Fix, fixes_for
from sightline.editing.limits import argument_problems, limit_problems, refusal_problems, schema_problems
from sightline.editing.operations import Edit, Set
from sightline.model.comparison import of_part
from sightline.model.json import JsonObject
from sightline.model.message import Message
from sightline.model.parts import Image, Part, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.request import Request
from sightline.tokens.estimate import Estimate
from sightline.wire.pointer import join, resolve


@dataclass(frozen=True, slots=True)
class Seal:
    """A sealed part and the section that it stands in."""

    part: Part
    section: str


@dataclass(frozen=True, slots=True)
class BrokenSignature:
    """What is wrong with a sealed part, and the edits that put it back, if there are some."""

    problem: Problem
    repair: tuple[Edit, ...] = ()


def find_broken_signatures(draft: Draft) -> Iterator[BrokenSignature]:
    """Sealed parts that are not as the client sent them."""
    if not draft.is_dirty:
        return
    sent, here = _signatures_seals(draft.first), _signatures_seals(draft)
    vanished = {seal.section for signature, seals in sent.items() if signature not in here for seal in seals}
    for signature, seals in here.items():
        homes = sent.get(signature, [])
        sections = {home.section for home in homes}
        is_home = any(seal.section in sections for seal in seals)
        for seal in seals:
            if not homes:
                is_forged = seal.section in vanished
                words = "this seal was changed" if is_forged else "this seal is not one that the client sent"
                yield BrokenSignature(Problem(seal.part.at, words, "error" if is_forged else "warning"))
            elif not any(of_part(seal.part) == of_part(home.part) for home in homes):
                repair = tuple(_repair(draft, seal.part.at, homes[0].part.at))
                yield BrokenSignature(Problem(seal.part.at, "what this seal covers was changed"), repair)
            elif seal.section not in sections:
                words = (
                    "this sealed part is a copy of one that stands elsewhere" if is_home else "this sealed part moved"
                )
                yield BrokenSignature(Problem(seal.part.at, words, "warning" if is_home else "error"))


def _repair(draft: Draft, at: str, home: str) -> Iterator[Edit]:
    """The edits that give a value what it was, and touch of it only what differs."""
    value, sent = resolve(draft.document, at), resolve(draft.first.document, home)
    if isinstance(value, dict) and isinstance(sent, dict) and value.keys() == sent.keys():
        yield from (Set(pointer=join(at, key), value=sent[key]) for key in sent if sent[key] != value[key])
    else:
        yield Set(pointer=at, value=sent)


def _signatures_seals(draft: Draft) -> dict[str, list[Seal]]:
    found: dict[str, list[Seal]] = defaultdict(list)
    if draft.request is not None:
        for message in draft.request.messages:
            for part in message.parts:
                if isinstance(part, Text | Image | Thinking | ToolCall) and part.signature:
                    found[part.signature].append(Seal(part, draft.section_at(part.at)))
    return found


_SAID = "x"


def is_same_shape(one: Request, other: Request) -> bool:
    """Whether the two differ in words at most."""
    if len(one.messages) != len(other.messages):
        return False
    pairs = [(mine, theirs) for mine, theirs in zip(one.messages, other.messages, strict=True) if mine is not theirs]
    if any(shape_of(mine) != shape_of(theirs) for mine, theirs in pairs):
        return False
    return msgspec.structs.replace(one, messages=()) == msgspec.structs.replace(other, messages=())


def shape_of(message: Message) -> Message:
    """The message with its words left out; what is sealed stays, since every letter of it counts."""
    return msgspec.structs.replace(message, parts=_shapes(message.parts))


def _shapes(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(map(_shape, parts))


def _shape(part: Part) -> Part:
    match part:
        case Text(signature=None) | Thinking(signature=None) | Refusal():
            return msgspec.structs.replace(part, text=_words(part.text))
        case ToolCall(signature=None):
            return msgspec.structs.replace(part, arguments=_arguments(part))
        case ToolResult():
            return msgspec.structs.replace(part, parts=_shapes(part.parts))
        case _:
            return part


def _words(text: str) -> str:
    """Nothing, only blanks, or something, which may end in blanks."""
    if not text.strip():
        return text[:1]
    return _SAID + text[len(text.rstrip()) :][:1]


def _arguments(call: ToolCall) -> str:
    if call.kind == "custom" or is_object(call.arguments):
        return "{}"
    return _words(call.arguments)


_MOST_FIXED = 30
"""Trying fixes costs time, and nobody clicks more of them than this before looking again."""


class ValidityFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One problem and where it is. Errors keep a request from being sent; `inherited` ones the client sent itself."""

    pointer: str
    section: str
    message: str
    severity: Literal["error", "warning"]
    inherited: bool = False
    fixes: tuple[Fix, ...] = ()


class Validity(msgspec.Struct, frozen=True):
    """`ok` where nothing keeps the draft from being sent."""

    ok: bool
    problems: tuple[ValidityFinding, ...] = ()


def check_draft(draft: Draft, *, facts: Facts, estimate: Estimate | None = None, is_vendor: bool = False) -> Validity:
    """Everything that is wrong with a draft, errors and warnings, in the order of the checks.

    `is_vendor`: it goes to a provider that refuses all that the vendor of the dialect and of the model refuses. Other
    servers may take more, so that there the same is only a warning.
    """
    return Checks(facts, is_vendor=is_vendor).of(draft, estimate)


class Checks:
    """Checks the drafts of one document. A draft of the same shape as the last one has the same problems."""

    def __init__(self, facts: Facts, *, is_vendor: bool = False) -> None:
        self._facts = facts
        self._is_vendor = is_vendor
        self._last: Draft | None = None
        self._findings: list[ValidityFinding] = []

    def of(self, draft: Draft, estimate: Estimate | None = None) -> Validity:
        """What is wrong with a draft, as checks and its budget tell."""
        if self._last is None or not _is_alike(self._last, draft):
            found = _find_problems(draft, self._facts, is_vendor=self._is_vendor)
            self._findings = [*found, *_seals(draft, self._facts)]
        self._last = draft
        findings = [*self._findings, *_budget(draft, self._facts, estimate)]
        return Validity(all(finding.severity != "error" for finding in findings), tuple(findings))


def _is_alike(last: Draft, draft: Draft) -> bool:
    if last.first is not draft.first or last.is_dirty != draft.is_dirty:
        return False
    old, new = last.request, draft.request
    return old is not None and new is not None and is_same_shape(old, new) and _settings(last) == _settings(draft)


def _settings(draft: Draft) -> JsonObject:
    """What stands beside the conversation: one value may be written in two ways of which an API takes one."""
    document, container = draft.document, draft.whole.reading.container
    fields = document if isinstance(document, dict) else {}
    return {key: value for key, value in fields.items() if join("", key) != container}


def _find_problems(draft: Draft, facts: Facts, *, is_vendor: bool) -> list[ValidityFinding]:
    problems = list(dict.fromkeys(_structural(draft, facts, is_vendor=is_vendor)))
    known = _count_inherited(draft, facts, problems, is_vendor=is_vendor)
    findings: list[ValidityFinding] = []
    for problem in problems:
        key = _key(draft, problem)
        is_inherited = not draft.is_dirty or known[key] > 0
        known[key] -= 1
        is_fixed = len(findings) < _MOST_FIXED
        findings.append(_finding(draft, problem, facts, is_inherited=is_inherited, is_fixed=is_fixed))
    return findings


def _seals(draft: Draft, facts: Facts) -> Iterator[ValidityFinding]:
    for broken in find_broken_signatures(draft):
        finding = _finding(draft, broken.problem, facts, is_inherited=False, is_fixed=True)
        repair = (Fix("Put it back as it came", broken.repair),) if broken.repair else ()
        yield msgspec.structs.replace(finding, fixes=(*repair, *finding.fixes))


def _structural(draft: Draft, facts: Facts, *, is_vendor: bool) -> Iterator[Problem]:
    request = draft.request
    if request is None:
        assert draft.fault is not None  # one of the two is there
        yield Problem(draft.fault.pointer or "", f"{draft.dialect} does not read this: {draft.fault.message}")
        return
    yield from dialect(draft.dialect).problems(request)
    yield from argument_problems(request)
    yield from schema_problems(request)
    yield from limit_problems(request, facts)
    for problem in (*dialect(draft.dialect).vendor_problems(draft.document), *refusal_problems(request, facts)):
        yield problem if is_vendor else replace(problem, severity="warning")
    yield from _other_form(draft, request)


def _other_form(draft: Draft, request: Request) -> Iterator[Problem]:
    """The client still waits for the form of answer that it asked for."""
    first = draft.first.request
    if first is not None and bool(first.options.stream) != bool(request.options.stream):
        at = request.options.places.get("stream", "")
        waits, gets = ("a stream", "one piece") if first.options.stream else ("one piece", "a stream")
        yield Problem(at, f"the client waits for {waits} and will get {gets}", "warning")


def _budget(draft: Draft, facts: Facts, estimate: Estimate | None) -> Iterator[ValidityFinding]:
    window = facts.context_window
    if estimate is None or window is None or estimate.high <= window:
        return
    if estimate.low <= window:
        words = f"this may be more than the {window} tokens that the model takes"
        yield ValidityFinding(pointer="", section="", message=words, severity="warning", inherited=not draft.is_dirty)
        return
    # Where the edit made it shorter, the client's own request was too long as well.
    is_inherited = len(draft.data) <= len(draft.original)
    yield ValidityFinding(
        pointer="",
        section="",
        message=f"this is more than the {window} tokens that the model takes",
        severity="warning" if is_inherited else "error",
        inherited=is_inherited,
    )


def _key(draft: Draft, problem: Problem) -> tuple[str, str]:
    return draft.section_at(problem.pointer), problem.message


def _count_inherited(draft: Draft, facts: Facts, found: list[Problem], *, is_vendor: bool) -> Counter[tuple[str, str]]:
    """How often each problem was there before; it is only asked if that can change anything."""
    if not draft.is_dirty or all(problem.severity != "error" for problem in found):
        return Counter()
    first = draft.first
    problems = dict.fromkeys(_structural(first, facts, is_vendor=is_vendor))
    return Counter(_key(first, problem) for problem in problems)


def _finding(draft: Draft, problem: Problem, facts: Facts, *, is_inherited: bool, is_fixed: bool) -> ValidityFinding:
    return ValidityFinding(
        pointer=problem.pointer,
        section=draft.section_at(problem.pointer),
        message=problem.message,
        severity="warning" if is_inherited else problem.severity,
        inherited=is_inherited,
        fixes=fixes_for(draft, problem, facts) if is_fixed else (),
    )
