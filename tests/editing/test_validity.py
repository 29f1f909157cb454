import pytest

from sightline.catalog.facts import Facts
from sightline.editing.draft import Draft
from sightline.editing.operations import Batch, Delete, Insert, Remove, Set, SetBody, SetText
from sightline.editing.validity import Checks, ValidityFinding, check_draft
from sightline.tokens.estimate import Estimate
from tests.contract.cases import Case, cases
from tests.editing.conversations import chat, claude, drafted, ids

FACTS = Facts(context_window=1000, max_output=4096)


def errors(draft: Draft, facts: Facts = FACTS) -> list[ValidityFinding]:
    return [finding for finding in check_draft(draft, facts=facts).problems if finding.severity == "error"]


def mended(draft: Draft, finding: ValidityFinding, label: str) -> Draft:
    (fix,) = [fix for fix in finding.fixes if fix.label == label]
    return draft.with_edit(Batch(operations=fix.operations))


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
def test_what_a_client_sent_may_be_sent_as_it_came(case: Case) -> None:
    facts = Facts(context_window=1, max_output=1, tools=False, input=("text",))
    validity = check_draft(Draft.of(case.file("request.json"), case.dialect), facts=facts, estimate=Estimate(9, 9, 9))
    assert validity.ok
    assert all(finding.inherited for finding in validity.problems)


def test_a_good_draft_has_no_problems() -> None:
    assert check_draft(drafted(claude()), facts=FACTS).problems == ()
    assert check_draft(drafted(chat(), "openai-chat"), facts=FACTS).ok


def test_an_orphan_is_an_error_that_names_its_section_and_its_fix() -> None:
    draft = drafted(claude()).with_edit(Remove(pointer="/messages/1/content/2"))
    (finding,) = errors(draft)
    assert not check_draft(draft, facts=FACTS).ok
    assert finding.section == ids(draft, "tool_result")[0]
    assert finding.pointer == "/messages/2/content/0"
    assert errors(mended(draft, finding, "Drop this result")) == []


def test_an_unanswered_call_is_an_error_with_a_fix() -> None:
    draft = drafted(chat(), "openai-chat").with_edit(Remove(pointer="/messages/3"))
    (finding,) = errors(draft)
    assert errors(mended(draft, finding, "Drop this call")) == []


def test_an_emptied_text_is_an_error_with_a_fix() -> None:
    draft = drafted(claude())
    emptied = draft.with_edit(SetText(section=ids(draft, "assistant")[0], text=""))
    (finding,) = errors(emptied)
    assert finding.message == "this text is empty"
    assert errors(mended(emptied, finding, "Drop the empty part")) == []


def test_bad_arguments_are_told_once_and_can_be_replaced() -> None:
    draft = drafted(chat(), "openai-chat")
    at = "/messages/2/tool_calls/0/function/arguments"
    (finding,) = errors(draft.with_edit(Set(pointer=at, value="{oops")))
    assert finding.message == "the arguments of 'add' are not a JSON object"
    assert errors(mended(draft.with_edit(Set(pointer=at, value="{oops")), finding, "Call it with {}")) == []


def test_a_bad_schema_of_a_tool_is_an_error() -> None:
    draft = drafted(claude()).with_edit(Set(pointer="/tools/1/input_schema/type", value="array"))
    (finding,) = errors(draft)
    assert finding.section == ids(draft, "tools")[0]
    assert errors(mended(draft, finding, "Drop this tool")) == []


def test_a_limit_beyond_the_model_can_be_lowered() -> None:
    draft = drafted(claude()).with_edit(Set(pointer="/max_tokens", value=9999))
    (finding,) = errors(draft)
    assert errors(mended(draft, finding, "Set it to 4096")) == []


def test_what_the_client_did_is_a_warning_and_what_the_edit_did_is_not() -> None:
    document = claude()
    document["messages"][3]["content"] = [{"type": "text", "text": ""}, {"type": "text", "text": "It is 2."}]
    draft = drafted(document)
    edited = draft.with_edit(SetText(section=ids(draft, "user")[0], text="What?"))
    (finding,) = check_draft(edited, facts=FACTS).problems
    assert (finding.severity, finding.inherited) == ("warning", True)
    worse = edited.with_edit(Set(pointer="/messages/3/content/1/text", value=""))
    assert sorted(finding.severity for finding in check_draft(worse, facts=FACTS).problems) == ["error", "warning"]


def test_an_inherited_problem_stays_one_when_it_moves() -> None:
    document = claude()
    document["messages"][7]["content"] = [{"type": "text", "text": ""}, {"type": "text", "text": "It is 4."}]
    draft = drafted(document)
    less = draft.with_edit(Delete(section=ids(draft, "tool_result")[0]))
    (finding,) = check_draft(less, facts=FACTS).problems
    assert (finding.severity, finding.inherited) == ("warning", True)


def test_a_body_that_cannot_be_read_is_an_error_unless_it_came_so() -> None:
    draft = drafted(claude()).with_edit(Set(pointer="/messages", value="none"))
    (finding,) = errors(draft)
    assert "anthropic does not read this" in finding.message
    assert finding.pointer == "/messages"
    assert not mended(draft, finding, "Back to the request as it came").is_dirty
    assert check_draft(drafted({"messages": "none"}), facts=FACTS).ok
    still = drafted({"messages": "none"}).with_edit(Insert(pointer="/more", value=1))
    assert check_draft(still, facts=FACTS).ok


def test_a_broken_seal_is_an_error_that_can_be_mended() -> None:
    draft = drafted(claude()).with_edit(Set(pointer="/messages/1/content/0/thinking", value="I guess."))
    (finding,) = errors(draft)
    assert finding.section == ids(draft, "assistant")[0]
    assert not mended(draft, finding, "Put it back as it came").is_dirty
    moved = drafted(claude()).with_edit(Set(pointer="/messages/1/content/0/signature", value="Zm9yZ2Vk"))
    assert [finding.message for finding in errors(moved)] == ["this seal was changed"]


def test_a_prompt_beyond_the_window_is_an_error_if_the_edit_made_it_longer() -> None:
    draft = drafted(claude())
    user = ids(draft, "user")[0]
    longer = draft.with_edit(SetText(section=user, text="What is 1+1? " * 9))
    shorter = draft.with_edit(SetText(section=user, text="1+1?"))

    def told(each: Draft, estimate: Estimate) -> list[str]:
        return [finding.severity for finding in check_draft(each, facts=FACTS, estimate=estimate).problems]

    assert told(longer, Estimate(1100, 1050, 1200)) == ["error"]
    assert told(shorter, Estimate(1100, 1050, 1200)) == ["warning"]
    assert told(longer, Estimate(1000, 900, 1200)) == ["warning"]
    assert told(longer, Estimate(900, 800, 1000)) == []


def test_of_very_many_problems_only_the_first_get_fixes() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "."}, {"type": "text", "text": "x"}]}] * 40
    draft = drafted(claude(messages=messages))
    body = draft.data.replace(b'"text": "."', b'"text": ""').decode()
    problems = check_draft(draft.with_edit(SetBody(body=body)), facts=FACTS).problems
    assert [bool(finding.fixes) for finding in problems] == [True] * 30 + [False] * 10


def test_an_answer_in_another_form_than_the_client_waits_for_is_a_warning() -> None:
    draft = Draft.of(b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}', "openai-chat")
    whole = draft.with_edit(Set(pointer="/stream", value=False))
    assert [
        (each.pointer, each.severity, each.message) for each in check_draft(whole, facts=FACTS, estimate=None).problems
    ] == [("/stream", "warning", "the client waits for a stream and will get one piece")]
    streamed = (
        Draft.of(whole.data, "openai-chat")
        .with_edit(Remove(pointer="/stream"))
        .with_edit(Insert(pointer="/stream", value=True))
    )
    told = check_draft(streamed, facts=FACTS, estimate=None)
    assert told.ok
    assert told.problems[0].message == "the client waits for one piece and will get a stream"
    broken = Draft.of(b'{"messages":7}', "openai-chat").with_edit(SetBody(body=draft.data.decode()))
    assert not check_draft(broken, facts=FACTS, estimate=None).problems


def test_what_only_the_vendor_refuses_is_an_error_there_and_a_warning_elsewhere() -> None:
    draft = drafted(chat(), "openai-chat").with_edit(Set(pointer="/temperature", value=7))
    facts = Facts(refuses=("top_p",))
    edited = draft.with_edit(Insert(pointer="/top_p", value=0.5))
    for is_vendor, severity in ((True, "error"), (False, "warning")):
        validity = check_draft(edited, facts=facts, is_vendor=is_vendor)
        assert [(finding.pointer, finding.severity) for finding in validity.problems] == [
            ("/temperature", severity),
            ("/top_p", severity),
        ]
        assert validity.ok is not is_vendor
    sent = drafted({**chat(), "temperature": 7}, "openai-chat")
    (finding,) = check_draft(sent, facts=Facts(), is_vendor=True).problems
    assert (finding.severity, finding.inherited) == ("warning", True)


def test_a_form_that_means_the_same_and_is_refused_is_told_until_it_is_mended() -> None:
    nested = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    draft = drafted({"model": "m", "input": "hi", "tools": [nested]}, "openai-responses")
    checks = Checks(Facts(), is_vendor=True)
    (finding,) = checks.of(draft).problems
    assert checks.of(mended(draft, finding, "Write it flat")).problems == ()
    assert checks.of(draft.with_edit(SetBody(body="[]"))).ok is False
