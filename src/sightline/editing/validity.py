"""Whether a draft can be sent: what its API would refuse, what the model cannot take, and what would mend it.

What the client's own request already had is never in the way: what it sent may always be sent as it came.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import msgspec

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Problem
from sightline.dialects.registry import dialect
from sightline.editing.draft import Draft
from sightline.editing.fixes import Fix, fixes_for
from sightline.editing.limits import argument_problems, limit_problems, refusal_problems, schema_problems
from sightline.editing.shape import is_same_shape
from sightline.editing.signatures import find_broken_signatures
from sightline.model.json import JsonObject
from sightline.model.request import Request
from sightline.tokens.estimate import Estimate
from sightline.wire.pointer import join

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
