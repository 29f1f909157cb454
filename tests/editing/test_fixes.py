from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Problem
from sightline.editing.draft import Draft
from sightline.editing.fixes import fixes_for, part_at, section_of
from sightline.editing.operations import Batch, Remove, Set, SetText
from tests.editing.conversations import chat, claude, drafted, ids


def fixed(draft: Draft, problem: Problem, facts: Facts | None = None) -> dict[str, Draft]:
    return {
        fix.label: draft.with_edit(Batch(operations=fix.operations))
        for fix in fixes_for(draft, problem, facts or Facts())
    }


def test_a_limit_is_set_to_what_the_model_takes() -> None:
    draft = drafted(chat(), "openai-chat")
    found = fixed(draft, Problem("/max_completion_tokens", "too many"), Facts(max_output=50))
    assert list(found) == ["Set it to 50", "Leave out max_completion_tokens"]
    assert found["Set it to 50"].request.options.max_tokens == 50


def test_a_limit_that_must_be_there_is_put_in() -> None:
    document = claude()
    del document["max_tokens"]
    found = fixed(drafted(document), Problem("/max_tokens", "max_tokens must be set"))
    assert found["Set it to 4096"].request.options.max_tokens == 4096
    assert "Set it to 9" in fixed(drafted(document), Problem("/max_tokens", ""), Facts(max_output=9))


def test_a_message_can_be_dropped() -> None:
    draft = drafted(claude())
    found = fixed(draft, Problem("/messages/3", "this message has no content"))
    assert list(found) == ["Drop this message"]
    assert len(found["Drop this message"].request.messages) == 9


def test_bad_arguments_become_none() -> None:
    draft = drafted(chat(), "openai-chat").with_edit(
        Set(pointer="/messages/2/tool_calls/0/function/arguments", value="{oops")
    )
    at = draft.request.messages[2].parts[0].at
    found = fixed(draft, Problem(at, "the arguments of 'add' are not a JSON object"))
    assert list(found) == ["Call it with {}", "Drop this call"]
    assert found["Call it with {}"].request.messages[2].parts[0].arguments == "{}"
    assert len(found["Drop this call"].request.messages) == 4


def test_an_orphan_can_be_dropped() -> None:
    draft = drafted(claude()).with_edit(Remove(pointer="/messages/1/content/2"))
    found = fixed(draft, Problem("/messages/2/content/0", "this tool result answers no open call (id 't1')"))
    assert list(found) == ["Drop this result"]
    assert len(found["Drop this result"].request.messages) == 9


def test_an_empty_text_can_be_dropped() -> None:
    draft = drafted(claude())
    answer = draft.section(ids(draft, "assistant")[0])
    emptied = draft.with_edit(SetText(section=answer.id, text=""))
    found = fixed(emptied, Problem("/messages/1/content/1", "this text is empty"))
    assert list(found) == ["Drop the empty part"]
    assert len(found["Drop the empty part"].request.messages[2].parts) == 2


def test_a_problem_of_the_whole_has_no_fix_and_an_unreadable_body_goes_back() -> None:
    draft = drafted(claude())
    assert fixed(draft, Problem("", "too long")) == {}
    broken = draft.with_edit(Set(pointer="/messages", value="none"))
    found = fixed(broken, Problem("", "cannot be read"))
    assert not found["Back to the request as it came"].is_dirty


def test_a_fix_that_is_refused_is_not_offered() -> None:
    draft = drafted({"max_tokens": 1, "messages": [{"role": "user", "content": "Hello."}]})
    assert fixed(draft, Problem("/messages/0", "?")) == {}


def test_places_lie_in_sections_and_parts() -> None:
    draft = drafted(claude())
    section = section_of(draft, "/system/0/cache_control/type")
    assert section.kind == "system"
    assert part_at(section, "/system/0/cache_control/type").type == "cache_breakpoint"
    assert part_at(section, "/system/0/text").type == "text"
    assert part_at(section, "/elsewhere") is None
    assert section_of(draft, "") is None
