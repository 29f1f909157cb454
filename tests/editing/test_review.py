"""The review of a draft: tokens, cost and validity."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sightline.catalog.facts import Facts, Prices
from sightline.dialects.registry import dialect
from sightline.editing.draft import Draft, EditHistory
from sightline.editing.operations import Delete, Duplicate, Redo, Remove, Restore, Set, SetText, Undo
from sightline.editing.review import CATEGORIES, Costs, EditCost, Review, TokenBudget, count_draft
from sightline.editing.validity import check_draft
from sightline.errors import Fault
from sightline.model.parts import Text
from sightline.model.request import Message, Request
from sightline.tokens.calibration import Ratio
from sightline.tokens.estimator import CountedRequest, Estimator
from sightline.wire.jsontext import decode
from tests.contract.cases import Case, cases
from tests.editing.conversations import chat, claude, drafted, ids

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
    editing = EditHistory(Draft.of(case.file("request.json"), case.dialect))
    previous = dialect(case.dialect).read_request(decode(case.file("request.json")))
    review = Review(Estimator(FACTS, dialect=case.dialect), FACTS, previous)
    for _ in range(data.draw(st.integers(1, 6))):
        try:
            draft = editing.apply(data.draw(operations(editing.draft)))
        except Fault:
            draft = editing.draft
        seen = review.of(draft)
        fresh = Estimator(FACTS, dialect=case.dialect)
        budget, _ = count_draft(draft, fresh, FACTS)
        assert (seen.budget.sections, seen.budget.categories) == (budget.sections, budget.categories)
        assert seen.budget.estimate.tokens == budget.estimate.tokens
        assert seen.validity == check_draft(draft, facts=FACTS, estimate=budget.estimate)
        if draft.request is not None:
            anew = Costs(previous, draft.first.request, fresh, FACTS).of(draft.request, section_at=draft.section_at)
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
    editing = EditHistory(drafted(chat(), "openai-chat"))
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


BUDGETING_FACTS = Facts(tokenizer="o200k_base", context_window=1000, max_output=200, message_tokens=3, reply_tokens=3)


def budget(draft: Draft, facts: Facts = BUDGETING_FACTS) -> TokenBudget:
    return count_draft(draft, Estimator(facts, dialect=draft.dialect), facts)[0]


def by_name(made: TokenBudget) -> dict[str, int]:
    return {category.name: category.tokens for category in made.categories}


def test_every_section_and_every_category_is_counted() -> None:
    draft = drafted(chat(), "openai-chat")
    made = budget(draft)
    assert set(made.sections) == {section.id for section in draft.sections}
    assert tuple(by_name(made)) == CATEGORIES
    assert sum(by_name(made).values()) == made.estimate.tokens
    assert all(by_name(made)[name] for name in ("system", "tools", "history", "user", "options"))
    assert (made.window, made.reserve) == (1000, 100)


def test_reserve_defaults_to_the_models_output_limit() -> None:
    document = chat()
    del document["max_completion_tokens"]
    assert budget(drafted(document, "openai-chat")).reserve == 200


def test_pictures_and_files_are_attachments_wherever_they_stand() -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    document = claude()
    before = by_name(budget(drafted(document)))
    document["messages"][-1]["content"] = [{"type": "text", "text": "Thanks."}, picture]
    shown = by_name(budget(drafted(document)))
    assert shown["attachments"] > before["attachments"] == 0
    document["messages"][2]["content"][0]["content"] = [picture]
    assert by_name(budget(drafted(document)))["attachments"] == 2 * shown["attachments"]


def test_an_edit_changes_its_own_section_alone() -> None:
    draft = drafted(chat(), "openai-chat")
    estimator = Estimator(BUDGETING_FACTS, dialect="openai-chat")
    user = ids(draft, "user")[0]
    edited = draft.with_edit(SetText(section=user, text="A much longer question."))
    before, after = (count_draft(each, estimator, BUDGETING_FACTS)[0] for each in (draft, edited))
    changed = {name for name in before.sections if before.sections[name] != after.sections[name]}
    assert changed == {user}


def test_what_is_deleted_costs_nothing() -> None:
    draft = drafted(chat(), "openai-chat")
    less = draft.with_edit(Delete(section=ids(draft, "system")[0]))
    made = budget(less)
    assert ids(draft, "system")[0] not in made.sections
    assert by_name(made)["system"] == 0


def test_what_past_counts_taught_is_shared_out() -> None:
    draft = drafted(chat(), "openai-chat")
    facts = Facts(context_window=1000)
    calibration = Ratio(1.5, 0.0, 1.0, 30)
    raw, made = (
        count_draft(draft, Estimator(facts, dialect="openai-chat", calibration=each), facts)[0]
        for each in (None, calibration)
    )
    assert made.estimate.tokens > raw.estimate.tokens
    assert made.sections[ids(draft, "user")[0]].tokens >= raw.sections[ids(draft, "user")[0]].tokens


@given(st.floats(0.3, 3.0), st.integers(0, 40))
def test_sections_and_categories_show_the_same_whole(ratio: float, added: int) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    document = chat()
    document["messages"][-1]["content"] = [{"type": "text", "text": "Thanks."}, picture]
    document["messages"].append({"role": "user", "content": [picture]})
    draft = drafted(document, "openai-chat")
    learned = Estimator(BUDGETING_FACTS, dialect="openai-chat", calibration=Ratio(ratio, float(added), 1.0, 30))
    made, _ = count_draft(draft, learned, BUDGETING_FACTS)
    shown = by_name(made)
    assert sum(shown.values()) == sum(each.tokens for each in made.sections.values()) == made.estimate.tokens
    for name in ("system", "tools", "options"):
        (section,) = (each.id for each in draft.sections if each.category == name)
        assert made.sections[section].tokens == shown[name]
    assert all(each.low <= each.tokens <= each.high for each in (*made.sections.values(), *made.categories))


def test_an_empty_body_takes_nothing_but_its_frame() -> None:
    made = budget(drafted({"contents": []}, "gemini"))
    assert made.sections == {}
    assert by_name(made)["options"] == made.estimate.tokens


def test_a_body_that_cannot_be_read_is_counted_as_text() -> None:
    draft = drafted({"messages": "none"})
    made = budget(draft)
    assert made.estimate.tokens == made.sections[draft.sections[0].id].tokens > 0
    assert (sum(by_name(made).values()), made.reserve) == (made.estimate.tokens, 200)


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
def test_real_requests_add_up(case: Case) -> None:
    data = case.file("request.json")
    draft = Draft.of(data, case.dialect)
    made = budget(draft)
    request = dialect(case.dialect).read_request(decode(data))
    assert made.estimate.tokens == Estimator(BUDGETING_FACTS, dialect=case.dialect).request(request).tokens
    assert sum(by_name(made).values()) == made.estimate.tokens
    assert all(category.low <= category.tokens <= category.high for category in made.categories)


LONG = "The quick brown fox jumps over the lazy dog. " * 200
COST_FACTS = Facts(prices=Prices(input=3.0, output=15.0, cached=0.3))
ESTIMATOR = Estimator(COST_FACTS, dialect="openai-chat")


def said(role: str, text: str, at: str = "") -> Message:
    return Message(role, (Text(text),), at=at)


def request(*messages: Message) -> Request:
    return Request(model="m", messages=messages, dialect="openai-chat")


SYSTEM = said("system", LONG, "/messages/0")
FIRST = said("user", f"One. {LONG}", "/messages/1")
ANSWER = said("assistant", "Well.", "/messages/2")
SECOND = said("user", "Two.", "/messages/3")
PREVIOUS = request(SYSTEM, FIRST)
ORIGINAL = request(SYSTEM, FIRST, ANSWER, SECOND)


def test_an_unedited_request_that_goes_on_keeps_all() -> None:
    cost = Costs(PREVIOUS, ORIGINAL, ESTIMATOR, COST_FACTS).of(ORIGINAL)
    assert cost.kept_tokens > 2000
    assert (cost.broken_tokens, cost.broken_by_edit, cost.reason, cost.section) == (0, 0, "", "")
    assert (cost.money, cost.money_by_edit) == (0, 0)


def test_an_edit_of_the_past_costs_what_stood_behind_it() -> None:
    edited = request(SYSTEM, said("user", "One, shortened.", "/messages/1"), ANSWER, SECOND)
    cost = Costs(PREVIOUS, ORIGINAL, ESTIMATOR, COST_FACTS).of(edited, section_at={"/messages/1": "s2"}.__getitem__)
    assert (cost.section, cost.pointer, cost.reason) == ("s2", "/messages/1", "an earlier message changed")
    assert cost.broken_by_edit == cost.broken_tokens > 1000
    assert cost.money_by_edit == cost.money == pytest.approx(cost.broken_tokens * 2.7e-6)


def test_a_review_has_the_cost_of_each_edit() -> None:
    messages = [{"role": "system", "content": LONG}, {"role": "user", "content": "One."}]
    draft = drafted({"model": "m", "messages": messages}, "openai-chat")
    system = ids(draft, "system")[0]
    review = Review(ESTIMATOR, COST_FACTS, draft.request)
    assert review.of(draft).cost.broken_tokens == 0
    cost = review.of(draft.with_edit(SetText(section=system, text="Be brief."))).cost
    assert cost.broken_by_edit == cost.broken_tokens > 1000
    assert cost.section == system


def test_an_edit_of_the_last_message_costs_nothing() -> None:
    edited = request(SYSTEM, FIRST, ANSWER, said("user", "Two, please."))
    assert Costs(PREVIOUS, ORIGINAL, ESTIMATOR, COST_FACTS).of(edited).broken_tokens == 0


def test_what_the_client_broke_itself_is_not_the_edits_doing() -> None:
    own = request(said("system", "Changed by the client."), FIRST, ANSWER, SECOND)
    edited = request(said("system", "Changed by the client and by me."), FIRST, ANSWER, SECOND)
    cost = Costs(PREVIOUS, own, ESTIMATOR, Facts()).of(edited)
    assert cost.broken_tokens > 2000
    assert (cost.broken_by_edit, cost.reason, cost.section) == (0, "system prompt changed", "")
    assert cost.money is None
