import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.registry import dialect
from sightline.editing.budgeting import CATEGORIES, TokenBudget, budget_of, with_tokens
from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, SetText
from sightline.tokens.calibration import Ratio
from sightline.tokens.estimator import Estimator
from sightline.wire.jsontext import decode
from tests.contract.cases import Case, cases
from tests.editing.conversations import chat, claude, drafted, ids

FACTS = Facts(tokenizer="o200k_base", context_window=1000, max_output=200, message_tokens=3, reply_tokens=3)


def budget(draft: Draft, facts: Facts = FACTS) -> TokenBudget:
    return budget_of(draft, Estimator(facts, dialect=draft.dialect), facts)


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
    assert made.whole.tokens == made.estimate.tokens


def test_the_reserve_is_what_the_model_can_write_if_nothing_is_asked() -> None:
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
    estimator = Estimator(FACTS, dialect="openai-chat")
    before = budget_of(draft, estimator, FACTS)
    user = ids(draft, "user")[0]
    after = budget_of(draft.with_edit(SetText(section=user, text="A much longer question.")), estimator, FACTS)
    changed = {name for name in before.sections if before.sections[name] != after.sections[name]}
    assert changed == {user}


def test_what_is_deleted_costs_nothing() -> None:
    draft = drafted(chat(), "openai-chat")
    less = draft.with_edit(Delete(section=ids(draft, "system")[0]))
    made = budget(less)
    assert ids(draft, "system")[0] not in made.sections
    assert by_name(made)["system"] == 0
    assert with_tokens(less.sections, made)[0].tokens is None
    assert with_tokens(less.sections, made)[1].tokens == made.sections[less.sections[1].id]


def test_what_past_counts_taught_is_shared_out() -> None:
    draft = drafted(chat(), "openai-chat")
    facts = Facts(context_window=1000)
    calibration = Ratio(1.5, 0.0, 1.0, 30)
    raw = budget_of(draft, Estimator(facts, dialect="openai-chat"), facts)
    made = budget_of(draft, Estimator(facts, dialect="openai-chat", calibration=calibration), facts)
    assert made.estimate.tokens > raw.estimate.tokens
    assert sum(by_name(made).values()) == made.estimate.tokens
    assert made.sections[ids(draft, "user")[0]].tokens >= raw.sections[ids(draft, "user")[0]].tokens


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
    assert made.estimate.tokens == Estimator(FACTS, dialect=case.dialect).request(request).tokens
    assert sum(by_name(made).values()) == made.estimate.tokens
    assert all(category.low <= category.tokens <= category.high for category in made.categories)
