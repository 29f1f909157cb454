"""Checks whether a draft can be sent: what its API would refuse, what the model cannot handle, and what would fix it.

A problem that the client's own request already had never blocks a draft: what the client sent can always be sent as it
arrived.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import msgspec

from sightline.catalog.facts import Facts, Modality
from sightline.catalog.fitting import is_begun, misfits
from sightline.dialects.conversation import SYSTEM_ROLES
from sightline.dialects.dialect import Problem
from sightline.dialects.registry import dialect, find_dialect
from sightline.dialects.validity import is_object
from sightline.editing.draft import Draft
from sightline.editing.fixes import EFFORT, INLINE_SYSTEM, OLD_LIMIT, THINKING, Fix, fixes_for
from sightline.editing.operations import Edit, Set
from sightline.model.json import JsonObject
from sightline.model.parts import Audio, Document, Image, Part, Text, Thinking, ToolCall, media_of
from sightline.model.request import FunctionTool, Request, of_part, parts_of
from sightline.tokens.estimate import Estimate
from sightline.wire.pointer import join, resolve


class _SignedPart(NamedTuple):
    part: Part
    section: str


@dataclass(frozen=True, slots=True)
class BrokenSignature:
    """A problem with a signed part, and the edits that restore the part, if there are any."""

    problem: Problem
    repair: tuple[Edit, ...] = ()


def find_broken_signatures(draft: Draft) -> Iterator[BrokenSignature]:
    """Signed parts that differ from what the client sent."""
    if not draft.is_dirty:
        return
    sent, here = _signatures(draft.first), _signatures(draft)
    vanished = {signed.section for signature, places in sent.items() if signature not in here for signed in places}
    for signature, places in here.items():
        homes = sent.get(signature, [])
        if places == homes:  # as for nearly all of them
            continue
        sections = {home.section for home in homes}
        is_home = any(signed.section in sections for signed in places)
        for signed in places:
            if not homes:
                is_forged = signed.section in vanished
                words = "this signature was changed" if is_forged else "this signature is not one that the client sent"
                yield BrokenSignature(Problem(signed.part.at, words, "error" if is_forged else "warning"))
            elif not any(of_part(signed.part) == of_part(home.part) for home in homes):
                repair = tuple(_repair(draft, signed.part.at, homes[0].part.at))
                yield BrokenSignature(Problem(signed.part.at, "what this signature covers was changed"), repair)
            elif signed.section not in sections:
                copied = "this signed part is a copy of one that stands elsewhere"
                words = copied if is_home else "this signed part moved"
                yield BrokenSignature(Problem(signed.part.at, words, "warning" if is_home else "error"))


def _repair(draft: Draft, at: str, home: str) -> Iterator[Edit]:
    """The edits that restore a value, changing only what differs."""
    value, sent = resolve(draft.document, at), resolve(draft.first.document, home)
    if isinstance(value, dict) and isinstance(sent, dict) and value.keys() == sent.keys():
        yield from (Set(pointer=join(at, key), value=sent[key]) for key in sent if sent[key] != value[key])
    else:
        yield Set(pointer=at, value=sent)


def _signatures(draft: Draft) -> dict[str, list[_SignedPart]]:
    found: dict[str, list[_SignedPart]] = defaultdict(list)
    if draft.request is not None:
        for message in draft.request.messages:
            for part in message.parts:
                if isinstance(part, (Text, Image, Thinking, ToolCall)) and part.signature:
                    found[part.signature].append(_SignedPart(part, draft.section_at(message.at)))
    return found


_MODALITIES: dict[type[Image | Document | Audio], tuple[Modality, str]] = {
    Image: ("image", "pictures"),
    Document: ("pdf", "documents"),
    Audio: ("audio", "sound"),
}
_RULES = {"budget": THINKING, "mode": THINKING, "effort": EFFORT}


def limit_problems(request: Request, facts: Facts) -> Iterator[Problem]:
    """Options and parts that exceed what is known of the model. Only a stated number is an error; the rest are
    warnings."""
    max_tokens = request.options.max_tokens
    if max_tokens is not None and facts.max_output is not None and max_tokens > facts.max_output:
        at = request.options.places.get("max_tokens", "")
        yield Problem(at, f"the model writes at most {facts.max_output} tokens")
    if facts.tools is False and request.tools:
        yield Problem(request.tools[0].at, "this model is not known to call tools", "warning")
    if facts.input is not None:
        for part in media_of(parts_of(request.messages)):
            modality, words = _MODALITIES[type(part)]
            if modality not in facts.input:
                yield Problem(part.at, f"this model is not known to take {words}", "warning")


def refusal_problems(request: Request, facts: Facts) -> Iterator[Problem]:
    """What the model rejects with an error: the same things that a translation for it would leave out."""
    form = dialect(request.dialect).reasoning
    for misfit in misfits(request, facts, form):
        # Most models accept a default value.
        if not misfit.is_default or (facts.refuses_defaults and misfit.field in (facts.refuses or ())):
            yield Problem(misfit.pointer, f"{misfit.what}: {misfit.why}", rule=_RULES.get(misfit.field, ""))
    # The Messages API has a field of this name too, which every model accepts.
    is_old = form == "effort" and request.options.places.get("max_tokens") == "/max_tokens"
    if facts.max_completion_tokens and is_old:
        yield Problem("/max_tokens", "this model takes the limit as max_completion_tokens", rule=OLD_LIMIT)
    if facts.inline_system is False and form == "mode":
        for message in request.messages:
            if message.role in SYSTEM_ROLES and message.at.startswith("/messages"):
                text = "this model takes no system message inside the conversation"
                yield Problem(message.at, text, rule=INLINE_SYSTEM)
    last = request.messages[-1] if request.messages else None
    if facts.prefill is False and last is not None and is_begun(last):
        yield Problem(last.at, "this model does not continue a last message of the assistant's")


def argument_problems(request: Request) -> Iterator[Problem]:
    """Arguments of a function that are not a JSON object. Empty arguments are only a warning, because the function may
    have been called without any."""
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolCall) and part.kind != "custom" and not is_object(part.arguments):
                text = f"the arguments of {part.name!r} are not a JSON object"
                yield Problem(part.at, text, "error" if part.arguments.strip() else "warning")


def schema_problems(request: Request) -> Iterator[Problem]:
    """Parameters of tools that are not the schema of an object."""
    spoken = find_dialect(request.dialect)
    is_strict = spoken is not None and spoken.rules.needs_declared_properties
    for tool in request.tools:
        if isinstance(tool, FunctionTool) and tool.schema:
            for words, is_fatal in _schema_faults(tool.schema, is_strict=is_strict or bool(tool.strict)):
                text = f"the parameters of {tool.name!r} {words}"
                yield Problem(tool.at, text, "error" if is_fatal else "warning")


def _schema_faults(schema: JsonObject, *, is_strict: bool) -> Iterator[tuple[str, bool]]:
    kind = schema.get("type")
    listed = kind if isinstance(kind, list) else [kind]
    if kind is None:
        yield "do not say that they are an object", False
    elif not any(isinstance(word, str) and word.lower() == "object" for word in listed):
        yield f"are of type {kind!r} and not an object", True
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        yield "have properties that are no object", True
        return
    yield from (
        (f"have a property {name!r} without a schema", True)
        for name, value in properties.items()
        if not isinstance(value, dict | bool)
    )
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        yield "require something that is no list of names", True
        return
    yield from ((f"require {name!r}, which is no property", is_strict) for name in required if name not in properties)


_MOST_TRIES, _MOST_BYTES_TRIED = 50, 4_000_000
"""How many fixes are tried in one review, and for how many bytes of documents. A try makes the edits and checks the
result, 2 to 3 ms per megabyte, and every keystroke is a review: 20 problems took 200 to 600 ms. Further problems are
shown without fixes until others are gone."""


class ValidityFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem and its place. Errors prevent a request from being sent; `inherited` problems were in the client's own
    request."""

    pointer: str
    section: str
    message: str
    severity: Literal["error", "warning"]
    inherited: bool = False
    fixes: tuple[Fix, ...] = ()


class Validity(msgspec.Struct, frozen=True):
    """The problems of a draft. `ok` if none of them prevents it from being sent."""

    ok: bool
    problems: tuple[ValidityFinding, ...] = ()


def check_draft(draft: Draft, *, facts: Facts, estimate: Estimate | None = None, is_vendor: bool = False) -> Validity:
    """Everything that is wrong with a draft, errors and warnings, in the order of the checks.

    `is_vendor` means that it is sent to a provider that refuses everything that the vendor of the dialect and the model
    refuses. Other servers may accept more, so there the same problems are only warnings.
    """
    tries = iter(range(min(_MOST_TRIES, max(1, _MOST_BYTES_TRIED // max(1, len(draft.data))))))
    findings = _find_problems(draft, facts, tries, is_vendor=is_vendor)
    for broken in find_broken_signatures(draft):
        finding = _finding(draft, broken.problem, facts, tries, is_inherited=False)
        repair = (Fix("Put it back as it came", broken.repair),) if broken.repair else ()
        findings.append(msgspec.structs.replace(finding, fixes=(*repair, *finding.fixes)))
    findings += _budget(draft, facts, estimate)
    return Validity(all(finding.severity != "error" for finding in findings), tuple(findings))


def _find_problems(draft: Draft, facts: Facts, tries: Iterator[object], *, is_vendor: bool) -> list[ValidityFinding]:
    problems = list(dict.fromkeys(_structural(draft, facts, is_vendor=is_vendor)))
    known = Counter[tuple[str, str]]()
    if draft.is_dirty and any(problem.severity == "error" for problem in problems):  # otherwise it makes no difference
        inherited = dict.fromkeys(_structural(draft.first, facts, is_vendor=is_vendor))
        known.update(_key(draft.first, problem) for problem in inherited)
    findings: list[ValidityFinding] = []
    for problem in problems:
        key = _key(draft, problem)
        is_inherited = not draft.is_dirty or known[key] > 0
        known[key] -= 1
        findings.append(_finding(draft, problem, facts, tries, is_inherited=is_inherited))
    return findings


def _structural(draft: Draft, facts: Facts, *, is_vendor: bool) -> Iterator[Problem]:
    request = draft.request
    if request is None:
        assert draft.fault is not None  # one of the two is set
        yield Problem(draft.fault.pointer or "", f"{draft.dialect} does not read this: {draft.fault.message}")
        return
    yield from draft.problems
    yield from argument_problems(request)
    yield from schema_problems(request)
    yield from limit_problems(request, facts)
    for problem in (*dialect(draft.dialect).vendor_problems(draft.document), *refusal_problems(request, facts)):
        yield problem if is_vendor else replace(problem, severity="warning")
    first = draft.first.request
    if first is not None and bool(first.options.stream) != bool(request.options.stream):
        # The client still expects the form of answer that it asked for.
        at = request.options.places.get("stream", "")
        waits, gets = ("a stream", "one piece") if first.options.stream else ("one piece", "a stream")
        yield Problem(at, f"the client waits for {waits} and will get {gets}", "warning")


def _budget(draft: Draft, facts: Facts, estimate: Estimate | None) -> Iterator[ValidityFinding]:
    window = facts.context_window
    if estimate is None or window is None or estimate.high <= window:
        return
    is_certain = estimate.low > window
    # If the edit made it shorter, the client's own request was too long as well.
    is_inherited = len(draft.data) <= len(draft.original) if is_certain else not draft.is_dirty
    yield ValidityFinding(
        pointer="",
        section="",
        message=f"this {'is' if is_certain else 'may be'} more than the {window} tokens that the model takes",
        severity="error" if is_certain and not is_inherited else "warning",
        inherited=is_inherited,
    )


def _key(draft: Draft, problem: Problem) -> tuple[str, str]:
    return draft.section_at(problem.pointer), problem.message


def _finding(
    draft: Draft, problem: Problem, facts: Facts, tries: Iterator[object], *, is_inherited: bool
) -> ValidityFinding:
    return ValidityFinding(
        pointer=problem.pointer,
        section=draft.section_at(problem.pointer),
        message=problem.message,
        severity="warning" if is_inherited else problem.severity,
        inherited=is_inherited,
        fixes=fixes_for(draft, problem, facts, tries),
    )
