"""What is wrong with a draft."""

import pytest

from sightline.catalog.facts import Facts
from sightline.editing.draft import Draft
from sightline.editing.operations import Batch, Delete, Edit, Insert, Move, Remove, Set, SetBody, SetText
from sightline.editing.validity import (
    ValidityFinding,
    argument_problems,
    check_draft,
    find_broken_signatures,
    limit_problems,
    refusal_problems,
    schema_problems,
)
from sightline.model.parts import Audio, Document, Image, Inline, Link, Opaque, PlainText, Text, ToolCall, ToolResult
from sightline.model.request import CustomTool, FunctionTool, Message, Options, Reasoning, Request, ToolChoice
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


CLAUDE, CHAT = drafted(claude()), drafted(chat(), "openai-chat")
ARGUMENTS = Set(pointer="/messages/2/tool_calls/0/function/arguments", value="{oops")


@pytest.mark.parametrize(
    ("draft", "edit", "kind", "message", "labels"),
    [
        (CLAUDE, Remove(pointer="/messages/1/content/2"), "tool_result", "answers no", ["Drop this result"]),
        (CHAT, Remove(pointer="/messages/3"), "tool_call", "has no result", ["Drop this call"]),
        (CLAUDE, Set(pointer="/messages/1/content/1/text", value=""), "assistant", "empty", ["Drop the empty part"]),
        (CHAT, ARGUMENTS, "tool_call", "are not a JSON object", ["Call it with {}", "Drop this call"]),
        (CLAUDE, Set(pointer="/tools/1/input_schema/type", value="array"), "tools", "array", ["Drop this tool"]),
        (CLAUDE, Set(pointer="/max_tokens", value=9999), "options", "at most 4096", ["Set it to 4096"]),
    ],
    ids=["an orphan", "an unanswered call", "an emptied text", "bad arguments", "a bad schema", "a limit too high"],
)
def test_an_error_names_its_section_and_each_of_its_fixes_removes_it(
    draft: Draft, edit: Edit, kind: str, message: str, labels: list[str]
) -> None:
    edited = draft.with_edit(edit)
    (finding,) = errors(edited)
    assert not check_draft(edited, facts=FACTS).ok
    assert finding.section == ids(edited, kind)[0]
    assert message in finding.message
    assert [fix.label for fix in finding.fixes] == labels
    assert all(errors(mended(edited, finding, label)) == [] for label in labels)


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


def test_a_broken_signature_is_an_error_that_can_be_mended() -> None:
    draft = drafted(claude()).with_edit(Set(pointer="/messages/1/content/0/thinking", value="I guess."))
    (finding,) = errors(draft)
    assert finding.section == ids(draft, "assistant")[0]
    assert not mended(draft, finding, "Put it back as it came").is_dirty


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


@pytest.mark.parametrize(("count", "length", "fixed"), [(60, 1, 50), (4, 1_900_000, 2)])
def test_of_very_many_problems_or_in_a_long_document_only_the_first_get_fixes(
    count: int, length: int, fixed: int
) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "."}, {"type": "text", "text": "x"}]}] * count
    messages[-1] = {"role": "user", "content": [*messages[0]["content"], {"type": "text", "text": "x" * length}]}
    draft = drafted(claude(messages=messages))
    body = draft.data.replace(b'"text": "."', b'"text": ""').decode()
    problems = check_draft(draft.with_edit(SetBody(body=body)), facts=FACTS).problems
    assert [bool(finding.fixes) for finding in problems] == [True] * fixed + [False] * (count - fixed)


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


def test_rejected_equivalent_tool_form_is_reported_until_fixed() -> None:
    nested = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    draft = drafted({"model": "m", "input": "hi", "tools": [nested]}, "openai-responses")
    (finding,) = check_draft(draft, facts=Facts(), is_vendor=True).problems
    assert check_draft(mended(draft, finding, "Write it flat"), facts=Facts(), is_vendor=True).problems == ()
    assert check_draft(draft.with_edit(SetBody(body="[]")), facts=Facts(), is_vendor=True).ok is False


THOUGHT = "/messages/1/content/0"


def told(draft: Draft) -> list[tuple[str, str]]:
    return [(broken.problem.severity, broken.problem.message) for broken in find_broken_signatures(draft)]


ELSEWHERE, COPY = "/messages/5/content/0", claude()["messages"][1]["content"][0]
FOREIGN = {"type": "thinking", "thinking": "Hm.", "signature": "Zm9yZWlnbg=="}


@pytest.mark.parametrize(
    ("edit", "problems"),
    [
        (Batch(operations=()), []),
        (SetText(section=ids(CLAUDE, "user")[0], text="Else?"), []),
        (Set(pointer=f"{THOUGHT}/signature", value="Zm9yZ2Vk"), [("error", "this signature was changed")]),
        (
            Insert(pointer=ELSEWHERE, value=FOREIGN),
            [("warning", "this signature is not one that the client sent")],
        ),
        (Move(source=THOUGHT, pointer=ELSEWHERE), [("error", "this signed part moved")]),
        (
            Insert(pointer=ELSEWHERE, value=COPY),
            [("warning", "this signed part is a copy of one that stands elsewhere")],
        ),
        (Set(pointer="/messages", value="none"), []),
    ],
)
def test_a_signed_part_is_as_it_came_or_a_problem(edit: Edit, problems: list[tuple[str, str]]) -> None:
    assert told(CLAUDE.with_edit(edit)) == problems


def test_a_thought_that_was_changed_can_be_put_back() -> None:
    draft = drafted(claude()).with_edit(Set(pointer=f"{THOUGHT}/thinking", value="I guess."))
    (broken,) = find_broken_signatures(draft)
    assert (broken.problem.severity, broken.problem.message) == ("error", "what this signature covers was changed")
    assert not draft.with_edit(Batch(operations=broken.repair)).is_dirty


def test_a_thought_that_got_more_fields_is_put_back_whole() -> None:
    draft = drafted(claude()).with_edit(Insert(pointer=f"{THOUGHT}/more", value=1))
    (broken,) = find_broken_signatures(draft)
    mended = draft.with_edit(Batch(operations=broken.repair))
    assert told(mended) == []
    assert mended.document == claude()


PICTURE = Image(Link("https://example.com/a.png"), at="/p")


def limit_messages(problems) -> list[tuple[str, str, str]]:
    return [(problem.pointer, problem.severity, problem.message) for problem in problems]


def test_more_than_the_model_writes_is_an_error() -> None:
    options = Options(max_tokens=5000, places={"max_tokens": "/max_tokens"})
    request = Request(options=options)
    found = limit_messages(limit_problems(request, Facts(max_output=4096)))
    assert found == [("/max_tokens", "error", "the model writes at most 4096 tokens")]
    assert limit_messages(limit_problems(request, Facts(max_output=5000))) == []
    assert limit_messages(limit_problems(request, Facts())) == []
    assert limit_messages(limit_problems(Request(), Facts(max_output=4096))) == []


def test_tools_for_a_model_without_tools_are_a_warning() -> None:
    request = Request(tools=(FunctionTool("add", at="/tools/0"),))
    assert limit_messages(limit_problems(request, Facts(tools=False)))[0][:2] == ("/tools/0", "warning")
    assert limit_messages(limit_problems(request, Facts(tools=True))) == []
    assert limit_messages(limit_problems(Request(), Facts(tools=False))) == []


def test_media_the_model_cannot_read_is_a_warning_at_any_depth() -> None:
    parts = (
        Text("look"),
        PICTURE,
        ToolResult("c", (Document(PlainText("x"), at="/d"), Text("y"))),
        Audio(Inline("audio/wav", ""), at="/a"),
    )
    request = Request(messages=(Message("user", parts),))
    found = limit_messages(limit_problems(request, Facts(input=("text",))))
    assert [each[0] for each in found] == ["/p", "/d", "/a"]
    assert {each[1] for each in found} == {"warning"}
    assert [each[2].rpartition(" ")[2] for each in found] == ["pictures", "documents", "sound"]
    assert limit_messages(limit_problems(request, Facts(input=("text", "image", "pdf", "audio")))) == []


def test_arguments_that_are_no_object_are_an_error_and_none_at_all_a_warning() -> None:
    calls = (
        ToolCall("1", "a", "{}", at="/1"),
        ToolCall("2", "b", "[", at="/2"),
        ToolCall("3", "c", "", at="/3"),
        ToolCall("4", "d", "free", kind="custom", at="/4"),
    )
    request = Request(messages=(Message("assistant", (Text("hm"), *calls)),))
    assert [(problem.pointer, problem.severity) for problem in argument_problems(request)] == [
        ("/2", "error"),
        ("/3", "warning"),
    ]


@pytest.mark.parametrize(
    ("schema", "words", "severity"),
    [
        ({"properties": {}}, "do not say", "warning"),
        ({"type": "array"}, "are of type 'array'", "error"),
        ({"type": ["string", "null"]}, "are of type", "error"),
        ({"type": "object", "properties": []}, "no object", "error"),
        ({"type": "object", "properties": {"a": 1}}, "property 'a' without a schema", "error"),
        ({"type": "object", "required": "a"}, "no list of names", "error"),
        ({"type": "object", "required": [1]}, "no list of names", "error"),
        ({"type": "object", "required": ["a"]}, "require 'a', which is no property", "warning"),
    ],
)
def test_parameters_that_are_no_schema_of_an_object(schema, words: str, severity: str) -> None:
    (problem,) = schema_problems(Request(tools=(FunctionTool("add", None, schema, at="/t"),), dialect="openai-chat"))
    assert words in problem.message
    assert (problem.pointer, problem.severity) == ("/t", severity)


@pytest.mark.parametrize(
    "schema", [None, {}, {"type": "OBJECT"}, {"type": ["object", "null"], "properties": {"a": {}}}]
)
def test_parameters_that_are_taken(schema) -> None:
    assert limit_messages(schema_problems(Request(tools=(FunctionTool("add", None, schema), CustomTool("x"))))) == []


def test_a_required_name_that_is_no_property_is_an_error_where_the_api_refuses_it() -> None:
    schema = {"type": "object", "required": ["a"]}
    strict = Request(tools=(FunctionTool("add", None, schema, strict=True),))
    assert [problem.severity for problem in schema_problems(strict)] == ["error"]
    gemini = Request(tools=(FunctionTool("add", None, schema),), dialect="gemini")
    assert [problem.severity for problem in schema_problems(gemini)] == ["error"]


# --- what the model refuses -------------------------------------------------------------------------


def refused(request: Request, facts: Facts) -> list[tuple[str, str]]:
    return [(problem.pointer, problem.message) for problem in refusal_problems(request, facts)]


def test_what_a_model_refuses_is_a_problem_unless_it_says_what_happens_anyway() -> None:
    facts = Facts(refuses=("temperature",), one_sampler=True, forced_tools=False, efforts=("low",))
    options = Options(temperature=0.2, reasoning=Reasoning(effort="max", at="/reasoning"), places={"temperature": "/t"})
    request = Request("m", dialect="openai-chat", options=options, tool_choice=ToolChoice("required", at="/c"))
    assert refused(request, facts) == [
        ("/reasoning", "effort 'max': the nearest that m takes is low"),
        ("/t", "temperature 0.2: m does not take it"),
        ("/c", "a forced tool call: m decides itself whether it calls a tool"),
    ]
    usual = Request("m", dialect="openai-chat", options=Options(temperature=1))
    assert refused(usual, facts) == []
    assert refused(usual, Facts(refuses=("temperature",), refuses_defaults=True)) != []


def test_the_older_name_of_the_limit_is_refused_in_chat_only() -> None:
    facts = Facts(max_completion_tokens=True)
    options = Options(max_tokens=5, places={"max_tokens": "/max_tokens"})
    assert [pointer for pointer, _ in refused(Request("m", dialect="openai-chat", options=options), facts)] == [
        "/max_tokens"
    ]
    newer = Options(max_tokens=5, places={"max_tokens": "/max_completion_tokens"})
    assert refused(Request("m", dialect="openai-chat", options=newer), facts) == []
    assert refused(Request("m", dialect="anthropic", options=options), facts) == []


def test_turns_that_a_model_does_not_take() -> None:
    system = Message("system", (Text("s"),), at="/messages/0")
    begun = Message("assistant", (Text("a"),), at="/messages/1")
    facts = Facts(inline_system=False, prefill=False)

    def pointers(*messages: Message, spoken: str = "anthropic") -> list[str]:
        return [pointer for pointer, _ in refused(Request("m", messages, dialect=spoken), facts)]

    assert pointers(system, begun) == ["/messages/0", "/messages/1"]
    assert pointers(Message("system", (Text("s"),), at="/system")) == []
    assert pointers(system, spoken="openai-chat") == []
    assert pointers() == pointers(Message("assistant", at="/messages/0")) == []
    assert pointers(Message("assistant", (Opaque("anthropic", {"type": "server_tool_use"}),), at="/messages/0")) == []
