"""How a request is read into sections and parts, with their ids, kinds and details."""

import json

import pytest

from sightline.editing.deletions import Deletions
from sightline.editing.document import DocumentReading, list_of, options_of, pairs_of, tools_of, type_of
from sightline.editing.draft import Draft
from sightline.editing.operations import Delete, Restore, Set, SetText
from sightline.editing.section import (
    CallReference,
    SectionPart,
    call_words,
    can_gain_text,
    category_of,
    details_of,
    kind_of,
    label_of,
    text_of,
    tool_name,
)
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    PlainText,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import CustomTool, Message, OpaqueTool, Role
from tests.editing.bodies import PNG, anthropic, chat, draft, gemini, raw, responses, round_of_tools, said, text

TOOL = {"name": "Bash", "description": "runs", "input_schema": {"type": "object"}}
A, B, C = said("user", "a"), said("assistant", "b"), said("user", "c")


def kinds(edited: Draft) -> list[str]:
    return [section.kind for section in edited.sections]


def test_a_messages_request() -> None:
    edited = anthropic(
        A, *round_of_tools(1, "I look."), B, C, system=[text("s")], tools=[TOOL], tool_choice={"type": "auto"}
    )
    assert kinds(edited) == ["system", "user", "assistant", "tool_result", "assistant", "user", "tools", "options"]
    assert [section.category for section in edited.sections] == [
        "system",
        "history",
        "history",
        "results",
        "history",
        "user",
        "tools",
        "options",
    ]
    result = edited.section("s4")
    assert result.answers == (CallReference("t1", "Bash", '{"command":"ls"}', "s3"),)
    assert result.label == "Result · Bash: ls"
    call = edited.section("s3").parts[1]
    assert (call.type, call.call_id, call.name, call.is_json, call.editable) == ("tool_call", "t1", "Bash", True, True)
    tools, options = edited.section("s7"), edited.section("s8")
    assert (tools.label, tools.pointer, tools.parts[0].name) == ("Tools (1)", "/tools", "Bash")
    assert json.loads(tools.parts[0].text) == TOOL
    assert [part.name for part in options.parts] == ["model", "max_tokens", "tool_choice"]


def test_a_chat_request() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    result = {"role": "tool", "tool_call_id": "c", "content": "done"}
    edited = chat(said("system", "s"), A, {"role": "assistant", "content": None, "tool_calls": [call]}, result)
    assert kinds(edited) == ["system", "user", "tool_call", "tool_result", "options"]
    assert edited.section("s3").text == '{"a": 1}'
    assert edited.section("s4").text == "done"
    assert edited.section("s4").answers[0].arguments == '{"a": 1}'
    assert [section.category for section in edited.sections[:4]] == ["system", "user", "history", "results"]


def test_a_responses_request() -> None:
    items = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
        {"type": "web_search_call", "id": "w"},
    ]
    edited = responses(said("user", "a"), *items, instructions="s")
    assert kinds(edited) == ["system", "user", "thinking", "other", "options"]
    assert edited.section("s1").pointer == "/instructions"
    thought = edited.section("s3")
    assert thought.parts[0].text == "hm"
    assert not thought.editable
    assert "signed" in thought.parts[0].reason
    assert edited.section("s4").label == "Other · web_search_call"


def test_a_gemini_request() -> None:
    edited = gemini(
        {"parts": [{"text": "a"}]},
        {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"output": "x"}}}]},
        system_instruction={"parts": [{"text": "s"}]},
        generationConfig={"temperature": 1},
    )
    assert kinds(edited) == ["system", "user", "tool_call", "tool_result", "options"]
    assert edited.section("s1").pointer == "/system_instruction"
    assert edited.section("s4").answers[0].section == "s3"
    assert [part.name for part in edited.section("s5").parts] == ["generationConfig"]


def test_a_raw_request() -> None:
    edited = raw({"role": 0, "content": [{"type": 1, "text": "s"}]}, {"role": 1, "content": "a"})
    assert kinds(edited) == ["system", "user", "options"]
    bare = draft("raw", [{"role": 1, "content": "a"}])
    assert kinds(bare) == ["user"]
    assert bare.section("s1").pointer == "/0"


def test_pictures_are_attachments() -> None:
    edited = anthropic(said("user", [PNG]), C)
    section = edited.section("s1")
    assert section.category == "attachments"
    assert section.parts[0].url.startswith("data:image/png")
    assert not section.parts[0].editable


def test_what_cannot_be_read_is_shown_as_it_is() -> None:
    for body in (b"{oh", b"[1]", b'"x"', b"\xff", b""):
        edited = Draft.of(body, "openai-chat")
        (section,) = edited.sections
        assert (section.kind, section.editable, section.id) == ("other", False, "s1")
        assert section.text == body.decode("utf-8", "replace")
        assert "cannot be read" in section.reason


def test_only_the_edited_section_changes() -> None:
    before = anthropic(A, *round_of_tools(), C, tools=[TOOL])
    after = before.with_edit(SetText(section="s4", text="z"))
    assert [one == two for one, two in zip(before.sections, after.sections, strict=True)] == [True] * 3 + [False] + [
        True
    ] * 2
    other = after.with_edit(Set(pointer="/max_tokens", value=7))
    assert other.section("s5") == after.section("s5")
    assert other.section("s6") != after.section("s6")
    described = after.with_edit(Set(pointer="/tools/0/description", value="walks"))
    assert described.section("s5") != after.section("s5")


def test_sections_behind_a_deleted_one_only_move() -> None:
    before = anthropic(A, B, said("user", [text("c"), text("d")]), B, C)
    after = before.with_edit(Delete(section="s2"))
    assert [section.pointer for section in after.sections[:5]] == [
        "/messages/0",
        "",
        "/messages/1",
        "/messages/2",
        "/messages/3",
    ]
    part = after.with_edit(Delete(section="s3", part="s3.p1"))
    assert [each.pointer for each in part.section("s3").parts] == ["", "/messages/1/content/0"]
    back = part.with_edit(Restore(section="s2"))
    assert [section.pointer for section in back.sections[:5]] == [f"/messages/{number}" for number in range(5)]


def test_a_deleted_section_shows_what_it_was() -> None:
    gone = anthropic(A, B, C).with_edit(Delete(section="s1")).section("s1")
    # An edit of it restores it.
    assert (gone.deleted, gone.text, gone.editable, gone.pointer) == (True, "a", True, "")


def test_without_words_of_a_person_what_the_model_said_is_history() -> None:
    edited = chat(said("assistant", "b"), said("assistant", "c"))
    assert [section.category for section in edited.sections[:2]] == ["history", "history"]


CALL, RESULT = ToolCall("c", "Bash", "{}"), ToolResult("c")
PICTURE, FOREIGN = Image(Link("https://example.com/a.png")), Opaque("x", {"type": "compaction"})


@pytest.mark.parametrize(
    ("role", "parts", "kind"),
    [
        ("system", [Text("x")], "system"),
        ("developer", [Text("x")], "developer"),
        ("user", [Text("x")], "user"),
        ("user", [], "user"),
        ("user", [PICTURE], "user"),
        ("user", [RESULT, CacheBreakpoint()], "tool_result"),
        ("user", [RESULT, Text("<system-reminder>\nx")], "tool_result"),
        ("user", [RESULT, Text("and now?")], "user"),
        ("user", [RESULT, PICTURE], "user"),
        ("user", [Text("<system-reminder>x</system-reminder>"), CacheBreakpoint()], "context"),
        ("user", [Text("<environment_context>\n  <cwd>/x")], "context"),
        ("user", [Text("# AGENTS.md instructions for /x")], "context"),
        ("user", [Text("<context>x")], "context"),
        ("user", [Text("<system-reminder>x"), Text("My question")], "user"),
        ("user", [FOREIGN], "other"),
        ("tool", [RESULT], "tool_result"),
        ("assistant", [Text("x"), CALL], "assistant"),
        ("assistant", [CALL, CALL], "tool_call"),
        ("assistant", [Thinking("x"), CALL], "tool_call"),
        ("assistant", [Thinking("x")], "thinking"),
        ("assistant", [], "assistant"),
        ("assistant", [FOREIGN], "other"),
    ],
)
def test_kinds_follow_from_the_role_and_the_parts(role: Role, parts: list[Part], kind: str) -> None:
    assert kind_of(Message(role, tuple(parts))) == kind


def test_a_name_tells_context_and_history() -> None:
    assert kind_of(Message("user", (Text("x"),), "chat_history")) == "history"
    assert kind_of(Message("user", (Text("x"),), "Context-Provider")) == "context"


def label(message: Message, *answered: str) -> str:
    return label_of(message, kind_of(message), 3, [CallReference("c", name, "", "s1") for name in answered])


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("Read", '{"file_path": "/shop/src/parser.py", "limit": 5}', "Read parser.py"),
        ("Read", '{"file_path": "C:\\\\shop\\\\parser.py"}', "Read parser.py"),
        ("list_dir", '{"path": "/"}', "list_dir /"),
        ("Bash", '{"command": "ls -la\\n  src", "description": "List"}', "Bash: ls -la src"),
        ("shell", '{"command": ["bash", "-lc", "ls -la"]}', "shell: ls -la"),
        ("shell", '{"command": ["git", "status"]}', "shell: git status"),
        ("exec_command", '{"cmd": "make test"}', "exec_command: make test"),
        ("Grep", '{"pattern": "def main", "path": "src/app/"}', "Grep: def main in app"),
        ("Task", '{"description": "Find the caller", "prompt": "Look…"}', "Task: Find the caller"),
        ("mcp__github__get_issue", '{"number": 7}', "github get_issue"),
        ("Bash", '{"command": [1]}', "Bash"),
        ("Bash", '{"command": " "}', "Bash"),
        ("Bash", '{"comm', "Bash"),
        ("Bash", "[]", "Bash"),
        ("Bash", '"\ud800"', "Bash"),
        ("Bash", '{"command": "' + "x" * 99 + '"}', f"Bash: {'x' * 59}…"),
    ],
)
def test_a_call_says_its_tool_and_what_it_is_about(name: str, arguments: str, words: str) -> None:
    assert call_words(name, arguments) == words


def test_labels_say_what_it_is_and_whom_it_is_about() -> None:
    assert label(Message("system", at="/system")) == "System prompt"
    assert label(Message("system", at="/messages/0")) == "System"
    assert label(Message("user", (Text("x"),))) == "User 3"
    assert label(Message("user", (Text("x"),), "ann")) == "User · ann"
    assert label(Message("assistant", (Text("x"),))) == "Assistant 3"
    assert label(Message("assistant", (Text("x"), CALL, CALL))) == "Assistant · calls Bash"
    assert label(Message("assistant", (Thinking("x"),))) == "Thinking"
    assert label(Message("tool", (RESULT,)), "Bash", "", "Bash") == "Result · Bash"
    assert label(Message("tool", (RESULT,))) == "Result"
    assert label(Message("user", (PICTURE, Text("<system-reminder>x")))) == "System reminder"
    assert label(Message("user", (Text("# AGENTS.md instructions"),))) == "AGENTS.md"
    assert label_of(Message("user", (PICTURE,)), "context", 1, ()) == "Context"
    assert label_of(Message("user", (Text("x"),)), "context", 1, ()) == "Context"
    assert label(Message("assistant", (FOREIGN,))) == "Other · compaction"
    assert label(Message("assistant", (Opaque("x", {"type": 1}),))) == "Other"
    assert label(Message("assistant", (Opaque("x", 1),))) == "Other"


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Text("x"), {}),
        (Text("<system-reminder>\nIt is late."), {"name": "System reminder"}),
        (ToolCall("c", "Bash", "{}"), {"call_id": "c", "name": "Bash"}),
        (ToolResult("c"), {"call_id": "c", "name": ""}),
        (Image(Inline("image/png", "AA==")), {"media_type": "image/png", "url": "data:image/png;base64,AA=="}),
        (Image(Inline("image/png", "A" * 9_000_000)), {"media_type": "image/png", "url": ""}),
        (
            Image(Link("https://example.com/a", "image/png")),
            {"media_type": "image/png", "url": "https://example.com/a"},
        ),
        (Document(FileId("f1"), "a.pdf"), {"url": "file:f1", "name": "a.pdf"}),
        (Document(PlainText("words")), {"media_type": "text/plain", "text": "words", "name": ""}),
        (Audio(id="a1", transcript="hello"), {"name": "a1", "text": "hello"}),
        (CacheBreakpoint(ttl="1h"), {"name": "ephemeral", "text": "1h"}),
    ],
)
def test_details(part: Part, told: dict[str, str]) -> None:
    assert details_of(part) == told


def part(kind: str, text: str = "", reason: str = "") -> SectionPart:
    return SectionPart(id="p", type=kind, pointer="/p", text=text, editable=not reason, reason=reason)  # type: ignore[arg-type]


def test_a_message_without_words_gains_a_text_where_it_has_a_list_for_one() -> None:
    picture, opaque = Image(Link("https://example.com/a"), at="/m/0"), Opaque("raw", {}, at="/m/1")
    assert can_gain_text(Message("user", (picture, opaque, CacheBreakpoint(at="/m/2")), at="/m"))
    assert not can_gain_text(Message("user", (Opaque("raw", {}, at="/m"),), at="/m"))
    call = ToolCall("c", "f", "{}", at="/m/3")
    assert not can_gain_text(Message("assistant", (opaque, call), at="/m"))
    gone = Deletions((frozenset({"/m/3"}),))
    assert can_gain_text(Message("assistant", (opaque, call), at="/m"), gone)


def test_the_text_of_a_section_is_that_of_its_text_parts() -> None:
    assert text_of([part("text", "a"), part("image", reason="no"), part("text", "b")]) == ("ab", "")
    assert text_of([part("text", "a", "sealed"), part("text", "b")]) == ("ab", "")
    assert text_of([part("text", "a", "sealed")]) == ("a", "sealed")


def test_without_text_parts_it_is_that_of_the_one_call_or_result() -> None:
    assert text_of([part("thinking", "t", "sealed"), part("tool_call", "{}")]) == ("{}", "")
    assert text_of([part("tool_result", "out", "no words")]) == ("out", "no words")
    assert text_of([part("tool_call", "{}"), part("tool_call", "{}")]) is None
    assert text_of([part("image", reason="no")]) is None


def test_a_section_without_a_text_is_edited_part_by_part_or_gains_one() -> None:
    calls = [{"type": "tool_use", "id": name, "name": "Bash", "input": {}} for name in ("t1", "t2")]
    several, picture = anthropic(said("assistant", calls), said("user", [PNG])).sections[:2]
    assert (several.text, several.editable) == ("", False)
    assert "one by one" in several.reason
    assert (picture.text, picture.editable, picture.reason) == ("", True, "")


def test_a_section_follows_what_is_around_its_message() -> None:
    start = anthropic(said("user", "a"), *round_of_tools(), said("user", "b"))
    assert [section.label for section in start.sections[:4]] == [
        "User 1", "Assistant · calls Bash: ls", "Result · Bash: ls", "User 2",
    ]  # fmt: skip
    renamed = start.with_edit(Set(pointer="/messages/1/content/0/input", value={"command": "pwd"}))
    assert renamed.sections[2].label == "Result · Bash: pwd", "the call that it answers has changed"
    assert renamed.sections[0] is start.sections[0]
    alone = start.with_edit(Delete(section="s1"))
    assert [section.pointer for section in alone.sections[:4]] == ["", "/messages/0", "/messages/1", "/messages/2"]
    earlier = start.with_edit(Delete(section="s4"))
    assert (start.sections[0].category, earlier.sections[0].category) == ("history", "user")
    assert alone.with_edit(Restore(section="s1")).sections == start.sections


def test_a_section_shows_values_that_only_python_finds_equal() -> None:
    start = anthropic(said("user", [{"type": "x", "value": 1, "others": {"a": 1, "b": 2}}]))
    assert start.sections[0].parts[0].text == '{"type":"x","value":1,"others":{"a":1,"b":2}}'
    precise = start.with_edit(Set(pointer="/messages/0/content/0/value", value=True))
    assert precise.sections[0].parts[0].text == '{"type":"x","value":true,"others":{"a":1,"b":2}}'
    turned = start.with_edit(Set(pointer="/messages/0/content/0/others", value={"b": 2, "a": 1}))
    assert turned.sections[0].parts[0].text == '{"type":"x","value":1,"others":{"b":2,"a":1}}'
    output = {"type": "computer_screenshot", "file_id": "f", "scale": 1}
    built_in = responses({"type": "computer_call_output", "call_id": "b", "output": output})
    assert built_in.sections[0].text == '{"type":"computer_screenshot","file_id":"f","scale":1}'
    scaled = built_in.with_edit(Set(pointer="/input/0/output/scale", value=1.0))
    assert scaled.sections[0].text == '{"type":"computer_screenshot","file_id":"f","scale":1.0}'


def test_categories() -> None:
    picture = Message("user", (Image(Link("https://example.com/a")), CacheBreakpoint()))
    words = Message("user", (Text("x"),))
    assert category_of(picture, "user", is_past=True) == "attachments"
    assert category_of(words, "system", is_past=True) == "system"
    assert category_of(words, "user", is_past=True) == "history"
    assert category_of(Message("user"), "user", is_past=False) == "user"
    call = Message("assistant", (ToolCall("c", "Bash", "{}"),))
    assert category_of(call, "assistant", is_past=False) == "history", "the person has not written it"


def test_tools_have_names_or_kinds() -> None:
    assert tool_name(CustomTool("patch")) == "patch"
    assert tool_name(OpaqueTool("x", {"type": "bash_1", "name": "bash"})) == "bash"
    assert tool_name(OpaqueTool("x", {"googleSearch": {}})) == "googleSearch"
    assert tool_name(OpaqueTool("x", {"type": 1})) == ""
    assert tool_name(OpaqueTool("x", None)) == ""


PLAIN_TOOL = {"type": "function", "name": "f", "parameters": {}}


def test_the_outline_has_items_then_tools_then_options() -> None:
    reading = DocumentReading.of(
        "anthropic",
        {
            "model": "m",
            "tools": [{"name": "f", "input_schema": {}}],
            "messages": [said("user", [text("a")])],
            "system": "s",
        },
    )
    assert list(reading.outline.items()) == [
        ("/system", ["text:"]),
        ("/messages/0", ["text:/content/0"]),
        ("tools", ["tool:/tools/0"]),
        ("options", ["option:/model"]),
    ]


def test_what_cannot_be_read_is_one_section() -> None:
    reading = DocumentReading.of("anthropic", {"messages": 5})
    assert (reading.request, reading.pairs) == (None, ())
    assert reading.fault is not None
    assert reading.outline == {"other": []}
    assert tools_of(reading) == ()
    assert options_of(reading) == {}


def test_a_bare_list_has_no_options() -> None:
    assert DocumentReading.of("raw", [{"role": 1, "content": "a"}]).outline == {"/0": ["text:/content"]}


def test_tools_that_an_item_brings_are_part_of_that_item() -> None:
    items = [{"type": "additional_tools", "tools": [PLAIN_TOOL]}, {"role": "user", "content": "a"}]
    reading = DocumentReading.of("openai-responses", {"input": items, "tools": [PLAIN_TOOL]})
    assert [tool.at for tool in tools_of(reading)] == ["/tools/0"]


def test_settings_beside_the_tools_are_shown_one_by_one() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    document = {"messages": [], "requestOptions": {"tools": [tool], "temperature": 1}, "a/b": 2, "z": {"tools": 1}}
    assert options_of(DocumentReading.of("raw", document)) == {
        "/requestOptions/temperature": 1,
        "/a~1b": 2,
        "/z": {"tools": 1},
    }


def test_what_is_empty_is_shown_as_an_option() -> None:
    assert options_of(DocumentReading.of("openai-chat", {"messages": [], "tools": []})) == {"/tools": []}


def test_words_for_types_and_lists() -> None:
    assert type_of(ToolCall("c", "f", "{}")) == "tool_call"
    assert type_of(CacheBreakpoint()) == "cache_breakpoint"
    assert list_of("/tools/0/functionDeclarations/2") == "/tools"
    assert list_of("/requestOptions/tools/1") == "/requestOptions/tools"


def call(at: str, call_id: str = "", name: str = "f") -> ToolCall:
    return ToolCall(call_id, name, "{}", at=at)


def result(at: str, call_id: str = "", name: str | None = "f") -> ToolResult:
    return ToolResult(call_id, (), name, at=at)


def foreign(at: str, **value: str) -> Opaque:
    return Opaque("anthropic", dict(value), at=at)


USED, FOUND = (
    foreign("/1", type="server_tool_use", id="w"),
    foreign("/2", type="web_search_tool_result", tool_use_id="w"),
)
SHELL = foreign("/3", type="local_shell_call", call_id="c")
SHELL_OUTPUT = foreign("/4", type="local_shell_call_output", call_id="c")
ASKED = foreign("/1", type="mcp_approval_request", id="mcpr_1", name="f", arguments="{}")
APPROVED = foreign("/2", type="mcp_approval_response", approval_request_id="mcpr_1")


@pytest.mark.parametrize(
    ("parts", "pairs"),
    [
        # They share an id.
        (
            [call("/1", "a"), call("/2", "b"), result("/3", "b"), result("/4", "a"), Text("x")],
            [("/2", "/3"), ("/1", "/4")],
        ),
        ([call("/1", "a"), result("/2", "other", None)], []),
        # Without ids the name and the order tell.
        (
            [call("/1"), call("/2"), call("/3", name="g"), result("/4", name="g"), result("/5")],
            [("/3", "/4"), ("/1", "/5")],
        ),
        # Where only one of the two has an id, the name tells.
        ([call("/1", "a"), result("/2")], [("/1", "/2")]),
        ([call("/1"), result("/2", "a")], [("/1", "/2")]),
        ([call("/1", "a"), result("/2", name="g")], []),
        # Tools of the server are paired too, and an approval with what it is asked for.
        ([USED, FOUND, SHELL, SHELL_OUTPUT], [("/1", "/2"), ("/3", "/4")]),
        ([FOUND, foreign("/5", type="compaction"), foreign("/6"), Opaque("raw", 1, at="/7")], []),
        ([ASKED, APPROVED], [("/1", "/2")]),
    ],
)
def test_which_result_answers_which_call(parts: list[Part], pairs: list[tuple[str, str]]) -> None:
    assert [(one.at, other.at) for one, other in pairs_of([Message("user", tuple(parts))])] == pairs


def test_the_conversation_is_a_list_somewhere() -> None:
    assert DocumentReading.of("openai-responses", {"input": []}).container == "/input"
    assert DocumentReading.of("raw", []).container == ""
