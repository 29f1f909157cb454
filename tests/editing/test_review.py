import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sightline.catalog.facts import Facts
from sightline.dialects.registry import dialect
from sightline.editing.budgeting import budget_of
from sightline.editing.cost import EditCost, cost_of
from sightline.editing.draft import Draft, Editing
from sightline.editing.operations import Delete, Duplicate, Redo, Remove, Restore, Set, SetText, Undo
from sightline.editing.review import Review
from sightline.editing.validity import check_draft
from sightline.errors import Fault
from sightline.tokens.calibration import Ratio
from sightline.tokens.estimator import CountedRequest, Estimator
from sightline.wire.jsontext import decode
from tests.contract.cases import Case, cases
from tests.editing.conversations import chat, drafted, ids

FACTS = Facts(context_window=100, max_output=1000, tools=False)


@st.composite
def operations(draw: st.DrawFn, draft: Draft):
    if not draft.sections:
        return Undo()
    section = draw(st.sampled_from(draft.sections))
    part = draw(st.sampled_from([None, *section.parts]))
    name = part and part.id
    place = (part or section).pointer
    return draw(
        st.sampled_from(
            [
                SetText(section=section.id, part=name, text="Some other words."),
                SetText(section=section.id, part=name, text=""),
                Delete(section=section.id, part=name),
                Restore(section=section.id, part=name),
                Duplicate(section=section.id),
                Remove(pointer=place),
                Set(pointer=place, value="x"),
                Undo(),
                Redo(),
            ]
        )
    )


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_what_is_remembered_is_what_would_be_found_anew(case: Case, data: st.DataObject) -> None:
    editing = Editing(Draft.of(case.file("request.json"), case.dialect))
    previous = dialect(case.dialect).read_request(decode(case.file("request.json")))
    review = Review(Estimator(FACTS, dialect=case.dialect), FACTS, previous)
    for _ in range(data.draw(st.integers(1, 6))):
        try:
            draft = editing.apply(data.draw(operations(editing.draft)))
        except Fault:
            draft = editing.draft
        seen = review.of(draft)
        fresh = Estimator(FACTS, dialect=case.dialect)
        budget = budget_of(draft, fresh, FACTS)
        assert (seen.budget.sections, seen.budget.categories) == (budget.sections, budget.categories)
        assert seen.budget.whole.tokens == budget.whole.tokens
        assert seen.validity == check_draft(draft, facts=FACTS, estimate=budget.whole)
        if draft.request is not None:
            anew = cost_of(previous, draft.first.request, draft.request, fresh, FACTS, section_at=draft.section_at)
            assert seen.cost == anew


def test_without_an_earlier_request_an_edit_breaks_nothing() -> None:
    draft = drafted(chat(), "openai-chat")
    review = Review(Estimator(Facts(), dialect="openai-chat"), Facts())
    assert review.of(draft.with_edit(SetText(section=ids(draft, "system")[0], text="Be brief."))).cost == EditCost()


def test_a_body_that_cannot_be_read_has_no_cost() -> None:
    draft = drafted(chat(), "openai-chat")
    review = Review(Estimator(Facts(), dialect="openai-chat"), Facts(), draft.request)
    seen = review.of(draft.with_edit(Set(pointer="/messages", value="none")))
    assert seen.cost == EditCost()
    assert not seen.validity.ok


def test_a_lesson_alone_does_not_make_a_request_too_large() -> None:
    """The rules alone find room for it; past counts of the model were far higher."""
    facts = Facts(context_window=2000)
    editing = Editing(drafted(chat(), "openai-chat"))
    spoken = next(section.id for section in editing.draft.sections if section.role == "user")
    draft = editing.apply(SetText(section=spoken, text="Some more words than before. " * 20))
    learned = Estimator(facts, dialect="openai-chat", calibration=Ratio(1.0, 50_000.0, 0.15, 24))
    seen = Review(learned, facts).of(draft)
    assert seen.budget.estimate.low > 2000
    found = [problem.severity for problem in seen.validity.problems if "tokens that the model takes" in problem.message]
    assert found == ["warning"]


def test_what_the_provider_counted_leads_in_the_budget() -> None:
    draft = drafted(chat(), "openai-chat")
    request = draft.request
    assert request is not None
    estimator = Estimator(FACTS, dialect="openai-chat")
    estimator.continue_from(CountedRequest(request.messages[:-1], request.tools, 5000))
    budget = Review(estimator, FACTS).of(draft).budget
    assert budget.estimate.low >= 5000
    assert budget.estimate.tokens == 5000 + estimator.message(request.messages[-1]).tokens
    assert sum(each.tokens for each in budget.categories) == budget.estimate.tokens
