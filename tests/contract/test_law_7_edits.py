"""Law 7, valid after every operation: deletions, masks and strips cascade or are refused, and never leave what the
dialect rejects for its structure; edits that can break it are told as errors, and their fixes mend it."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sightline.catalog.facts import Facts
from sightline.dialects.registry import NAMES, dialect
from sightline.editing.draft import Draft
from sightline.editing.masks import Mask, Strip, apply_masks
from sightline.editing.operations import Batch, Delete, Duplicate, Edit, Move, Remove, Restore, SetRole, SetText
from sightline.editing.validity import check_draft
from sightline.errors import Fault
from sightline.model.report import Report
from sightline.wire.jsontext import decode, encode
from tests.contract.cases import Case, cases
from tests.contract.generated import TARGET, requests, spaced
from tests.editing.conversations import mask_of, strip_of
from tests.examples import examples

FACTS = Facts()
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def errors(draft: Draft) -> list[str]:
    """What the dialect rejects, read anew from the bytes that would be sent."""
    request = dialect(draft.dialect).read_request(decode(draft.data))
    problems = dialect(draft.dialect).problems(request)
    return sorted(problem.message for problem in problems if problem.severity == "error")


def targets(draft: Draft) -> list[tuple[str, str | None]]:
    """Everything that can be deleted or restored."""
    found: list[tuple[str, str | None]] = []
    for section in draft.sections:
        found.append((section.id, None))
        found += [(section.id, part.id) for part in section.parts]
    return found


@st.composite
def deletions(draw: st.DrawFn, draft: Draft) -> Edit:
    section, part = draw(st.sampled_from(targets(draft) or [("s1", None)]))
    kind = draw(st.sampled_from((Delete, Delete, Delete, Restore)))
    return kind(section=section, part=part)


@st.composite
def strips(draw: st.DrawFn, draft: Draft) -> Strip:
    what = draw(st.sampled_from(("tool_results", "thinking", "tool")))
    names = [part.name for section in draft.sections for part in section.parts if part.type == "tool"]
    if what == "tool":
        return Strip(what=what, tool=draw(st.sampled_from(names or ["none"])))
    return Strip(what=what, older_than=draw(st.integers(0, 3)))


def attempted(draft: Draft, operation: Edit) -> Draft:
    try:
        return draft.with_edit(operation)
    except Fault:
        return draft


def check_deletions(draft: Draft, data: st.DataObject) -> None:
    before = errors(draft)
    for _ in range(data.draw(st.integers(1, 6))):
        draft = attempted(draft, data.draw(deletions(draft)))
        assert new(errors(draft), before) == []
        assert check_draft(draft, facts=FACTS).ok


def new(now: list[str], before: list[str]) -> list[str]:
    left = list(before)
    found = []
    for message in now:
        if message in left:
            left.remove(message)
        else:
            found.append(message)
    return found


def check_masks(draft: Draft, data: st.DataObject) -> None:
    """Some edits of one request are kept and strips are added; on the request that comes again all hold together."""
    before = errors(draft)
    masks: list[Mask] = []
    for _ in range(data.draw(st.integers(0, 4))):
        operation = data.draw(deletions(draft) | words(draft))
        try:
            masks.append(mask_of(draft, operation, draft.with_edit(operation), "all", ""))
        except Fault:
            continue
    masks += [strip_of(data.draw(strips(draft)), "all", "") for _ in range(data.draw(st.integers(0, 2)))]
    after, outcomes = apply_masks(draft, masks, session="s", project="")
    assert len(outcomes) <= len(masks)
    assert new(errors(after), before) == []
    assert check_draft(after, facts=FACTS).ok
    if not any(outcome.outcome == "applied" for outcome in outcomes):
        assert after.data == draft.data or any(outcome.outcome == "refused" for outcome in outcomes)


@st.composite
def words(draw: st.DrawFn, draft: Draft) -> Edit:
    """Another text for something that can be edited."""
    able = [(section.id, None) for section in draft.sections if section.editable and section.kind != "tool_call"]
    able += [
        (section.id, part.id)
        for section in draft.sections
        for part in section.parts
        if part.editable and part.type == "text"
    ]
    section, part = draw(st.sampled_from(able or [("s1", None)]))
    return SetText(section=section, part=part, text=draw(st.sampled_from(("Other words.", "x", "Été\n\n<b>"))))


def check_fixes(draft: Draft, data: st.DataObject) -> None:
    """Whatever an edit by place breaks is told, and each fix that is offered leaves no more errors than there were."""
    places = [part.pointer for section in draft.sections for part in section.parts if part.pointer]
    places += [section.pointer for section in draft.sections if section.pointer]
    roles = [SetRole(section=section.id, role=role) for section in draft.sections for role in ("user", "assistant")]
    removals = [Remove(pointer=place) for place in places or ["/nowhere"]]
    operation = data.draw(st.sampled_from([*removals, *roles]))
    broken = attempted(draft, operation)
    validity = check_draft(broken, facts=FACTS)
    if broken.request is not None and new(errors(broken), errors(draft)):
        assert not validity.ok
    count = sum(finding.severity == "error" for finding in validity.problems)
    for finding in validity.problems[:5]:
        for fix in finding.fixes:
            mended = check_draft(broken.with_edit(Batch(operations=fix.operations)), facts=FACTS)
            assert sum(each.severity == "error" for each in mended.problems) <= count


@st.composite
def anything(draw: st.DrawFn, draft: Draft) -> Edit:
    """Any edit: those that promise to leave a valid request, and those by place, which only promise to tell."""
    if not draft.sections:
        return Remove(pointer="/nowhere")
    section = draw(st.sampled_from(draft.sections))
    places = [each.pointer for each in (section, *section.parts) if each.pointer] or ["/nowhere"]
    place = draw(st.sampled_from(places))
    others = [each.pointer for each in draft.sections if each.pointer] or [place]
    return draw(
        deletions(draft)
        | deletions(draft)
        | words(draft)
        | st.sampled_from(
            [
                Duplicate(section=section.id),
                SetRole(section=section.id, role=draw(st.sampled_from(("user", "assistant", "system", "tool")))),
                Remove(pointer=place),
                Move(source=place, pointer=draw(st.sampled_from(others))),
                SetText(section=section.id, text=""),
            ]
        )
    )


def check_sequences(draft: Draft, data: st.DataObject) -> None:
    """After every operation of a sequence: valid, or told; and valid for sure as long as nothing was done by place."""
    first, is_promised = errors(draft), True
    for _ in range(data.draw(st.integers(2, 8))):
        operation = data.draw(anything(draft))
        draft = attempted(draft, operation)
        is_promised = is_promised and not isinstance(operation, SetText | Remove | Move)
        is_new = draft.request is None or bool(new(errors(draft), first))
        assert not (is_promised and is_new)
        assert not is_new or not check_draft(draft, facts=FACTS).ok


CHECKS = {"sequences": check_sequences, "deletions": check_deletions, "masks": check_masks, "fixes": check_fixes}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", cases("request.json"), ids=str)
# Few examples of each: with sixty requests and four checks, every way to edit comes some hundred times.
@settings(max_examples=examples(2), suppress_health_check=SLOW)
@given(data=st.data())
def test_a_real_request_stays_valid(case: Case, check: str, data: st.DataObject) -> None:
    CHECKS[check](Draft.of(case.file("request.json"), case.dialect), data)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(10), suppress_health_check=SLOW)
@given(request=requests(), random=st.randoms(), data=st.data())
def test_a_generated_request_stays_valid(name: str, check: str, request, random, data: st.DataObject) -> None:
    body = dialect(name).write_request(request, TARGET, Report())
    CHECKS[check](Draft.of(spaced(body, random), name), data)


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
@pytest.mark.parametrize("strip", [Strip(what="tool_results"), Strip(what="thinking")], ids=lambda strip: strip.what)
def test_a_strip_leaves_nothing_of_its_class_or_says_what_stayed(case: Case, strip: Strip) -> None:
    draft = Draft.of(case.file("request.json"), case.dialect)
    after, (outcome,) = apply_masks(draft, [strip_of(strip, "all", "")], session="", project="")
    assert new(errors(after), errors(draft)) == []
    kind = "tool_result" if strip.what == "tool_results" else "thinking"
    left = [
        part.id
        for section in after.sections
        for part in section.parts
        if part.type == kind and not part.deleted and not section.deleted
    ]
    under_way = any(part.type == "tool_result" for section in draft.sections[-4:] for part in section.parts)
    assert not left or outcome.outcome == "refused" or (kind == "thinking" and under_way)
    json.loads(after.data)
    assert encode(decode(after.data))
