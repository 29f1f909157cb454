"""Passes over messages before a dialect writes them."""

import pytest

from sightline.dialects.conversation import (
    as_turns,
    leading_count,
    plain_text,
    safe_id,
    with_answers,
    with_ids,
    with_policy,
    with_user_message,
    with_words,
    without_private_lines,
)
from sightline.dialects.dialect import SystemPolicy, Target
from sightline.dialects.registry import NAMES, dialect
from sightline.model.parts import Image, Link, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Message, Request, parts_of
from tests.dialects.reports import losses, named_losses

SYSTEM = Message("system", (Text("be kind"),), at="/0")
DEVELOPER = Message("developer", (Text("be brief"),), at="/1")
USER = Message("user", (Text("hi"),), at="/2")
LATE = Message("system", (Text("be careful"),), at="/3")


def said(*parts: Part) -> Message:
    return Message("assistant", parts)


def test_leading_messages_are_those_before_the_conversation_starts() -> None:
    assert leading_count((SYSTEM, DEVELOPER, USER, LATE)) == 2
    assert leading_count((SYSTEM, DEVELOPER)) == 2
    assert leading_count(()) == 0


def test_in_place_moves_nothing() -> None:
    report = Report()
    messages = (SYSTEM, DEVELOPER, USER, LATE)
    assert with_policy(messages, "in_place", report) is messages


def test_merge_leading_joins_leading_messages_and_keeps_the_rest() -> None:
    report = Report()
    merged = with_policy((SYSTEM, DEVELOPER, USER, LATE), "merge_leading", report)
    assert merged == (Message("system", (Text("be kind"), Text("be brief")), at="/0"), USER, LATE)
    assert losses(report) == [("/1", "identity")]
    assert with_policy((SYSTEM, USER), "merge_leading", report) == (SYSTEM, USER)


def test_merging_keeps_unknown_fields_and_tells_of_names() -> None:
    report = Report()
    named = Message("system", (Text("be kind"),), "ann", at="/0", extras={"a": 1})
    other = Message("system", (Text("be brief"),), at="/1", extras={"b": 2})
    (merged, _) = with_policy((named, other, USER), "merge_leading", report)
    assert (merged.name, merged.extras) == (None, {"a": 1, "b": 2})
    assert [(loss.pointer, loss.what) for loss in report.losses] == [("/0", "name of a message")]


def test_merge_all_moves_later_ones_to_the_front_and_says_so() -> None:
    report = Report()
    merged = with_policy((SYSTEM, USER, LATE), "merge_all", report)
    assert merged == (Message("system", (Text("be kind"), Text("be careful")), at="/0"), USER)
    assert [loss.pointer for loss in report.losses] == ["/3"]


def test_where_only_system_messages_stand_the_last_one_speaks_as_the_user() -> None:
    report = Report()
    spoken = with_user_message((SYSTEM, DEVELOPER), report, "anthropic")
    assert [message.role for message in spoken] == ["system", "user"]
    assert losses(report) == [("/1", "content")]
    assert with_user_message((SYSTEM, USER), report, "anthropic") == (SYSTEM, USER)
    assert with_user_message((), report, "anthropic") == ()


def test_ids_are_left_alone_where_every_part_has_one() -> None:
    messages = (said(ToolCall("c1", "add", "{}")), Message("tool", (ToolResult("c1"),)))
    assert with_ids(messages, Report()) is messages


def test_missing_ids_pair_calls_and_results_of_one_name_in_order() -> None:
    report = Report()
    messages = (
        said(ToolCall("", "add", "1"), ToolCall("mine", "sub", "2"), ToolCall("", "add", "3"), Text("x")),
        Message(
            "user",
            (ToolResult("", name="add"), ToolResult("mine", name="sub"), ToolResult("", name="add"), ToolResult("")),
        ),
    )
    calls, results = with_ids(messages, report)
    assert [part.id for part in calls.parts if isinstance(part, ToolCall)] == ["call_1", "mine", "call_2"]
    assert [part.id for part in results.parts if isinstance(part, ToolResult)] == ["call_1", "mine", "call_2", "call_0"]
    assert {addition.severity for addition in report.additions} == {"identity"}


def test_a_result_that_names_another_call_is_not_taken_from_the_queue() -> None:
    messages = (
        said(ToolCall("", "add", "1")),
        Message("tool", (ToolResult("other", name="add"), ToolResult("", name="add"))),
    )
    _, results = with_ids(messages, Report())
    assert [part.id for part in results.parts if isinstance(part, ToolResult)] == ["other", "call_1"]


@pytest.mark.parametrize("name", [None, "add", "another"])
def test_a_call_that_is_answered_by_its_id_waits_no_more_whatever_name_the_answer_has(name: str | None) -> None:
    messages = (
        said(ToolCall("c1", "add", "1"), ToolCall("c2", "add", "2")),
        Message("tool", (ToolResult("c1", name=name), ToolResult("", name="add"))),
    )
    _, results = with_ids(messages, Report())
    assert [part.id for part in results.parts if isinstance(part, ToolResult)] == ["c1", "c2"]


def test_an_id_that_two_calls_have_answers_the_later_one() -> None:
    messages = (
        said(ToolCall("c1", "add", "1")),
        said(ToolCall("c1", "sub", "2"), ToolCall("c2", "sub", "3")),
        Message("tool", (ToolResult("c1"), ToolResult("", name="sub"), ToolResult("", name="add"))),
    )
    results = with_ids(messages, Report())[-1]
    assert [part.id for part in results.parts if isinstance(part, ToolResult)] == ["c1", "c2", "c1"]


def test_items_of_one_turn_become_one_message() -> None:
    call, thought = ToolCall("c1", "add", "{}"), Thinking("hm")
    turns = as_turns((USER, said(thought), said(Text("I will")), said(call), Message("tool", (ToolResult("c1"),))))
    assert turns == (USER, said(thought, Text("I will"), call), Message("tool", (ToolResult("c1"),)))


def test_results_of_one_turn_become_one_message() -> None:
    results = (Message("tool", (ToolResult("c1"),)), Message("tool", (ToolResult("c2"),)))
    assert as_turns(results) == (Message("tool", (ToolResult("c1"), ToolResult("c2"))),)


def test_whole_messages_of_one_role_stay_apart() -> None:
    messages = (USER, USER, said(Text("a")), said(Text("b")))
    assert as_turns(messages) == messages


def test_an_opaque_item_joins_its_turn() -> None:
    opaque = Opaque("openai-responses", {"type": "web_search_call"})
    assert as_turns((said(opaque), said(Text("found")))) == (said(opaque, Text("found")),)


def test_plain_text_is_the_words_alone() -> None:
    assert plain_text((Text("a"), Image(Link("u")), Text("b"))) == "ab"


def test_an_id_that_the_api_takes_is_never_touched() -> None:
    report = Report()
    assert safe_id("toolu_01-X", "/a", report, "anthropic") == "toolu_01-X"
    assert not report.losses


def test_an_id_that_it_does_not_take_is_replaced_the_same_way_each_time() -> None:
    report = Report()
    ids = {safe_id("call:1/ü", "/a", report, "anthropic") for _ in range(3)}
    assert len(ids) == 1
    assert safe_id("call:2", "/a", report, "anthropic") not in ids
    assert [loss.severity for loss in report.losses] == ["identity"]


FOUND = Opaque("anthropic", {"type": "search_result", "citations": {"enabled": True}}, text="words", at="/4")


def test_part_with_a_text_form_is_sent_as_text_to_other_dialects() -> None:
    report = Report()
    unknown = Opaque("anthropic", {"type": "container_upload"})
    result = ToolResult("c", (FOUND, unknown))
    said = (FOUND, unknown, Text("a"), ToolResult("d", (Text("b"),)))
    messages = (USER, Message("user", said), Message("tool", (result,)))
    told = with_words(messages, report, "gemini")
    assert told[0] is USER
    words = Text("words", at="/4")
    assert told[1].parts == (words, unknown, Text("a"), ToolResult("d", (Text("b"),)))
    assert told[2].parts == (ToolResult("c", (words, unknown)),)
    assert named_losses(report) == [
        ("/4", "part 'search_result' of anthropic", "identity"),
        ("/4/citations", "citations of it", "option"),
    ]
    assert with_words(messages, Report(), "anthropic") == messages
    odd = (Message("user", (Opaque("x", "odd", text="words"),)),)
    assert with_words(odd, Report(), "gemini") == (Message("user", (Text("words"),)),)


USER_ANSWERS = Message("user", (Text("and?"),), at="/u")


def called(*ids: str) -> Message:
    return Message("assistant", tuple(ToolCall(each, "f", "{}") for each in ids))


def result(call_id: str) -> ToolResult:
    return ToolResult(call_id, at=f"/r-{call_id}")


def answered(*parts: Part) -> Message:
    return Message("tool", parts)


def put(*turns: Message) -> tuple[tuple[Message, ...], list[str]]:
    report = Report()
    out = with_answers(turns, report, "gemini")
    return out, [loss.pointer for loss in report.losses]


def test_answers_in_their_place_are_left_alone() -> None:
    turns = (
        USER_ANSWERS,
        called("a", "b"),
        answered(result("a")),
        Message("user", (result("b"), Text("x"))),
        USER_ANSWERS,
    )
    assert put(*turns) == (turns, [])


def test_a_late_answer_is_moved_behind_its_call() -> None:
    out, lost = put(called("a"), USER_ANSWERS, answered(result("a")))
    assert out == (called("a"), Message("tool", (result("a"),), at="/r-a"), USER_ANSWERS)
    assert lost == ["/r-a"]


def test_it_joins_the_answers_that_are_there_already() -> None:
    late = Message("user", (result("b"), Text("x")))
    out, _ = put(called("a", "b"), answered(result("a")), USER_ANSWERS, late)
    assert out == (called("a", "b"), answered(result("a"), result("b")), USER_ANSWERS, Message("user", (Text("x"),)))


def test_answers_of_several_turns_find_each_their_own() -> None:
    out, lost = put(called("a"), USER_ANSWERS, called("b"), answered(result("b"), result("a")))
    assert out == (
        called("a"),
        Message("tool", (result("a"),), at="/r-a"),
        USER_ANSWERS,
        called("b"),
        answered(result("b")),
    )
    assert lost == ["/r-a"]


def test_an_answer_to_nothing_stays_where_it_is() -> None:
    turns = (USER_ANSWERS, answered(result("x")), Message("user", ()), called("a"), USER_ANSWERS, answered(result("a")))
    out, lost = put(*turns)
    assert out == (*turns[:4], Message("tool", (result("a"),), at="/r-a"), USER_ANSWERS)
    assert lost == ["/r-a"]


def test_without_ids_nothing_is_known_to_be_late() -> None:
    turns = (called(""), USER_ANSWERS, answered(result("")))
    assert put(*turns) == (turns, [])


def test_an_id_that_is_used_again_is_answered_again() -> None:
    turns = (called("a"), answered(result("a")), called("a"), answered(result("a")), answered(result("a")))
    assert put(*turns) == (turns, [])


BILLING = "x-anthropic-billing-header: cc_version=2.1.197.ccd; cch=12345;"


def without(*messages: Message, source: str = "anthropic") -> tuple[tuple[Message, ...], list[tuple[str, str]]]:
    report = Report()
    request = without_private_lines(Request("m", messages), dialect(source), report)
    return request.messages, losses(report)


def test_what_only_the_source_reads_is_left_out_of_the_system_prompt() -> None:
    system = Message("system", (Text(BILLING, at="/system/0"), Text("be kind")))
    assert without(system, USER) == ((Message("system", (Text("be kind"),)), USER), [("/system/0", "identity")])
    alone = Message("system", (Text(BILLING, at="/system"),))
    assert without(alone, USER) == ((USER,), [("/system", "identity")])
    lines = Message("system", (Text(f"{BILLING}\nbe kind", at="/system"),))
    assert without(lines, USER) == (
        (Message("system", (Text("be kind", at="/system"),)), USER),
        [("/system", "identity")],
    )


def test_nothing_else_is_left_out_with_it() -> None:
    spoken = Message("user", (Text(BILLING),))
    empty = Message("system")
    picture = Message("system", (Image(Link("u")),))
    assert without(empty, picture, SYSTEM, spoken) == ((empty, picture, SYSTEM, spoken), [])
    system = Message("system", (Text(BILLING),))
    assert without(system, USER, source="gemini") == ((system, USER), [])


def written(name: str, *messages: Message, system: SystemPolicy = "in_place") -> tuple[Request, Report]:
    """The request of another dialect as this one writes it and reads it again."""
    report, spoken = Report(), dialect(name)
    body = spoken.write_request(Request("m", messages, dialect="other"), Target(system), report)
    return spoken.read_request(body), report


@pytest.mark.parametrize("name", NAMES)
def test_every_dialect_has_system_messages_where_the_target_wants_them(name: str) -> None:
    request, report = written(name, USER, LATE, system="merge_all")
    assert [message.role for message in request.messages] == ["system", "user"]
    assert named_losses(report) == [("/3", "place of a system message", "option")]


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai-responses"])
def test_what_needs_a_message_to_answer_gets_the_last_of_the_system(name: str) -> None:
    request, report = written(name, SYSTEM, LATE)
    assert [message.role for message in request.messages] == ["system", "user"]
    assert named_losses(report) == [("/3", "role of a system message", "content")]


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_where_nothing_is_left_to_answer_it_is_a_loss_and_the_rules_say_so(name: str) -> None:
    request, report = written(name, Message("user", (Text(""),), at="/messages/0"))
    assert named_losses(report)[-1] == ("/messages/0", "every message", "content")
    assert named_losses(written(name)[1]) == [("", "every message", "content")]
    assert request.messages == ()
    assert any("no message to answer" in problem.message for problem in dialect(name).problems(request))


@pytest.mark.parametrize("name", ["anthropic", "openai-chat", "openai-responses", "raw"])
def test_calls_and_results_without_ids_share_a_made_one(name: str) -> None:
    call, result = ToolCall("", "f", "{}"), ToolResult("", (Text("r"),), "f")
    request, report = written(name, USER, said(call), Message("tool", (result,)))
    ids = [part.id for part in parts_of(request.messages) if isinstance(part, (ToolCall, ToolResult))]
    assert ids == ["call_1", "call_1"]
    made = [each for each in report.additions if each.what in ("id of a tool call", "id of a tool result")]
    assert [each.severity for each in made] == ["identity", "identity"]


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai-chat", "openai-responses"])
def test_what_stands_elsewhere_too_is_no_loss(name: str) -> None:
    mirror = Opaque("other", {}, mirrored=True, at="/m")
    system = Message("system", (*SYSTEM.parts, mirror))
    request, report = written(name, system, Message("developer", (mirror,), at="/m"), USER, said(mirror, Text("a")))
    assert [(message.role, len(message.parts)) for message in request.messages] == [
        ("system", 1),
        ("user", 1),
        ("assistant", 1),
    ]
    assert named_losses(report) == []
