from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.making.case_writer import CaseWriter, MadeFile, Omission, Placeholders, slug
from sightline.evals.core.reading.document import Node, SuiteFindings
from sightline.evals.core.reading.sources import with_environment, with_variables
from sightline.evals.core.suite import SuitePlace
from sightline.model.json import JsonObject
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
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import Message

HOME = "/ho" + "me/ada"
MAC = "/Us" + "ers/ada"


def filled(text: str, variables: dict[str, str]) -> str:
    """The text as a suite's reader fills it in."""
    findings = SuiteFindings()
    node = with_environment(Node(text, SuitePlace()), {}, findings)
    node = with_variables(node, dict(variables), findings)
    assert findings.problems == ()
    assert isinstance(node.value, str)
    return node.value


@pytest.mark.parametrize(
    ("text", "replaced", "variables"),
    [
        (
            "run 0f8fad5b-d9cb-469f-a165-70867728950e again",
            "run {{ uuid }} again",
            {"uuid": "0f8fad5b-d9cb-469f-a165-70867728950e"},
        ),
        ("at 2026-11-15T13:48:54.123Z.", "at {{ time }}.", {"time": "2026-11-15T13:48:54.123Z"}),
        ("Sun Nov 15 13:48:54 UTC 2026", "{{ time }}", {"time": "Sun Nov 15 13:48:54 UTC 2026"}),
        ("Today is 2026-11-15, a day.", "Today is {{ date }}, a day.", {"date": "2026-11-15"}),
        ("Today's date: Sunday, November 15, 2026", "Today's date: {{ date }}", {"date": "Sunday, November 15, 2026"}),
        ("on 15 November 2026 or 11/15/2026", "on {{ date }} or {{ date_2 }}",
         {"date": "15 November 2026", "date_2": "11/15/2026"}),
        ("sess_a1b2c3d4e5", "{{ session }}", {"session": "sess_a1b2c3d4e5"}),
        ("session_id=9f3kz81, go", "session_id={{ session }}, go", {"session": "9f3kz81"}),
        ("see toolu_01A09q90qw90lq917835lq9", "see {{ id }}", {"id": "toolu_01A09q90qw90lq917835lq9"}),
        ("cd /tmp/tmp8x_3k/out", "cd {{ temp_dir }}/out", {"temp_dir": "/tmp/tmp8x_3k"}),
        (r"C:\Users\ada\AppData\Local\Temp\x1\a", r"{{ temp_dir }}\a",
         {"temp_dir": r"C:\Users\ada\AppData\Local\Temp\x1"}),
        (f"open {HOME}/notes.md", "open {{ home }}/notes.md", {"home": HOME}),
        (f"'{MAC}'", "'{{ home }}'", {"home": MAC}),
        (r"C:\Users\ada\notes", r"{{ home }}\notes", {"home": r"C:\Users\ada"}),
        ("in /workspace/shop/src/a.py", "in {{ dir }}/src/a.py", {"dir": "/workspace/shop"}),
        ("in /srv/app.py", "in {{ dir }}/app.py", {"dir": "/srv"}),
    ],
)  # fmt: skip
def test_what_is_another_each_time_gets_a_name(text: str, replaced: str, variables: dict[str, str]) -> None:
    placeholders = Placeholders()
    assert placeholders.text(text) == replaced
    assert placeholders.variables == variables
    assert filled(replaced, variables) == text


@pytest.mark.parametrize(
    "text",
    [
        "gpt-4o-2024-08-06",
        "GET /v1/models and /usr/bin/env",
        "https://example.com/home/ada/x",
        "either/or, 1/2, 2026",
        "user_authentication and call_something_long",
        "version 1.2.3-4",
        "the work of /tmp",
        "2026-13-45",
    ],
)
def test_what_only_looks_so_stays(text: str) -> None:
    assert Placeholders().text(text) == text


def test_the_same_words_have_the_same_name_and_others_the_next() -> None:
    placeholders = Placeholders()
    assert placeholders.text("2026-01-02 2026-01-03 2026-01-02") == "{{ date }} {{ date_2 }} {{ date }}"
    assert placeholders.text("2026-01-03") == "{{ date_2 }}"
    assert placeholders.variables == {"date": "2026-01-02", "date_2": "2026-01-03"}


@pytest.mark.parametrize("text", ["{{ name }}", "${{ NAME }}", "$${{NAME}}", "{{{{ x }}", "a {{x.y}} b", "{{ 1 }}"])
def test_literal_braces_are_not_taken_for_references(text: str) -> None:
    placeholders = Placeholders()
    assert filled(placeholders.text(text), placeholders.variables) == text


def test_behind_a_dollar_sign_nothing_is_replaced() -> None:
    placeholders = Placeholders()
    assert placeholders.text("costs $2026-11-15") == "costs $2026-11-15"


@given(st.lists(st.sampled_from(["2026-11-15", "{{", "}}", "$", " x ", "/tmp/a1", "{", "\n", "é", "sess_1234567890"])))
def test_filling_in_placeholders_restores_the_original_text(pieces: list[str]) -> None:
    text = "".join(pieces)
    placeholders = Placeholders()
    assert filled(placeholders.text(text), placeholders.variables) == text


PNG = b"\x89PNG\r\n\x1a\n"
PICTURE = Image(Inline("image/png", b64encode(PNG).decode()))


def writer() -> CaseWriter:
    return CaseWriter("demo", lambda text: text.replace("sk-secret", "***"), Placeholders())


def written(*parts: Part, role: str = "user") -> tuple[list[JsonObject], CaseWriter]:
    used = writer()
    return used.messages([Message(role, parts)]), used


def test_words_alone_are_content_and_more_is_a_list_of_parts() -> None:
    assert written(Text("Hello"))[0] == [{"role": "user", "content": "Hello"}]
    assert written(Text("a"), Refusal("b"), CacheBreakpoint())[0] == [
        {"role": "user", "content": [{"type": "text", "value": "a"}, {"type": "text", "value": "b"}]}
    ]


def test_a_name_is_kept_and_an_empty_message_is_not() -> None:
    used = writer()
    messages = used.messages([Message("user", (Text("Hi"),), name="ada"), Message("user", (Text(""),))])
    assert messages == [{"role": "user", "name": "ada", "content": "Hi"}]


def test_calls_and_results_find_each_other_under_new_ids() -> None:
    messages = writer().messages(
        [
            Message("assistant", (Text("I look."), ToolCall("toolu_9", "look", '{"path": "a", "n": 1}'))),
            Message("user", (ToolResult("toolu_9", (Text("seen"),)), Text("go on"))),
            Message("assistant", (ToolCall("toolu_9", "look", ""),)),
            Message("tool", (ToolResult("toolu_9", structured={"ok": True}),)),
        ]
    )
    assert messages == [
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [{"id": "call_1", "name": "look", "arguments": {"path": "a", "n": 1}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "name": "look", "content": "seen"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "tool_calls": [{"id": "call_2", "name": "look", "arguments": {}}]},
        {"role": "tool", "tool_call_id": "call_2", "name": "look", "content": '{"ok":true}'},
    ]


def test_items_of_one_turn_are_one_message_with_its_calls() -> None:
    messages = writer().messages(
        [
            Message("assistant", (Thinking("hm"),)),
            Message("assistant", (Text("I look."),)),
            Message("assistant", (ToolCall("a", "look", "{}"),)),
            Message("assistant", (ToolCall("b", "look", "{}"),)),
            Message("assistant", (Text("Wait."),)),
            Message("tool", (ToolResult("b", (Text("2"),)), ToolResult("a", ()))),
            Message("assistant", (Text("Done."),)),
            Message("assistant", (Text("Really."),)),
        ]
    )
    assert [each["role"] for each in messages] == ["assistant", "tool", "tool", "assistant", "assistant"]
    assert messages[0]["content"] == [{"type": "text", "value": "I look."}, {"type": "text", "value": "Wait."}]
    assert [each["id"] for each in messages[0]["tool_calls"]] == ["call_1", "call_2"]
    assert (messages[1]["tool_call_id"], messages[2]["tool_call_id"], messages[2]["content"]) == (
        "call_2",
        "call_1",
        "",
    )


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (ToolCall("a", "patch", '{"x": 1}', kind="custom"), '{"x": 1}'),
        (ToolCall("a", "look", '{"x": '), '{"x": '),
        (ToolCall("a", "look", "[1]"), "[1]"),
        (ToolCall("a", "look", '{"x": [{"y": 123456789012345678901}]}'), '{"x": [{"y": 123456789012345678901}]}'),
        (ToolCall("a", "look", '{"x": [1, null, "sk-secret"]}'), {"x": [1, None, "***"]}),
    ],
)
def test_arguments_are_an_object_where_a_suite_can_hold_it_and_the_models_words_otherwise(
    call: ToolCall, arguments: object
) -> None:
    messages, _ = written(call, role="assistant")
    assert messages[0]["tool_calls"][0]["arguments"] == arguments


def test_results_without_ids_answer_the_last_call_of_their_tool() -> None:
    used = writer()
    messages = used.messages(
        [
            Message("assistant", (ToolCall("", "look", "{}"), ToolCall("", "read", "{}"))),
            Message("tool", (ToolResult("", (Text("1"),), "look"), ToolResult("", (Text("2"),), "who"))),
        ]
    )
    assert messages[1] == {"role": "tool", "tool_call_id": "call_1", "name": "look", "content": "1"}
    assert messages[2] == {"role": "tool", "name": "who", "content": "2"}
    assert used.left == ()


def test_result_without_a_call_and_failed_result_are_reported() -> None:
    messages, used = written(ToolResult("gone", (Text("1"),), is_error=True))
    assert messages == [{"role": "tool", "content": "1"}]
    assert [each.what for each in used.left] == ["the id gone of a result", "that a tool failed"]


def test_pictures_and_documents_become_files_beside_the_suite() -> None:
    words = PlainText("key: sk-secret", "text/markdown")
    pdf = Document(Inline("application/pdf", b64encode(b"%PDF-1").decode()), title="My Report.PDF")
    messages, used = written(PICTURE, PICTURE, pdf, Document(words), Document(words, title="notes"))
    assert messages[0]["content"] == [
        {"type": "image", "value": "demo/image-1.png"},
        {"type": "image", "value": "demo/image-1.png"},
        {"type": "file", "value": "demo/my-report-2.pdf"},
        {"type": "file", "value": "demo/file-3.md"},
        {"type": "file", "value": "demo/file-3.md"},
    ]
    assert used.files == (
        MadeFile("demo/image-1.png", PNG),
        MadeFile("demo/my-report-2.pdf", b"%PDF-1"),
        MadeFile("demo/file-3.md", b"key: ***"),
    )


def test_a_picture_by_its_address_stays_one() -> None:
    messages, _ = written(Image(Link("https://example.com/a.png?key=sk-secret")))
    assert messages[0]["content"] == [{"type": "image", "value": "https://example.com/a.png?key=***"}]


def test_a_file_of_an_unknown_kind_still_has_a_name() -> None:
    messages, _ = written(Document(Inline("", b64encode(b"x").decode())))
    assert messages[0]["content"] == [{"type": "file", "value": "demo/file-1.bin"}]


@pytest.mark.parametrize(
    ("part", "left"),
    [
        (Thinking("hm"), "reasoning"),
        (Audio(id="a"), "sound"),
        (Opaque("openai-responses", {"type": "web"}), "a part that only openai-responses knows"),
        (Image(FileId("file-1")), "the image file-1"),
        (Image(Inline("image/png", "???")), "an image"),
        (Document(Link("https://example.com/a.pdf")), "a document by its address"),
        (ToolResult("x", (ToolCall("a", "b", "{}"),)), "a call inside a result"),
    ],
)
def test_parts_a_suite_cannot_hold_are_reported(part: Part, left: str) -> None:
    _, used = written(part)
    assert left in [each.what for each in used.left]


def test_mirrored_part_is_not_lost_and_audio_keeps_its_transcript() -> None:
    messages, used = written(Opaque("gemini", {}, mirrored=True), Audio(transcript="la la"))
    assert messages == [{"role": "user", "content": "la la"}]
    assert used.left == (Omission("sound", "a suite has no part for it"),)


def test_secrets_are_masked_and_half_characters_replaced_everywhere() -> None:
    messages, used = written(
        Text("sk-secret \ud83d"),
        ToolCall("a", "look", '{"sk-secret": {"k": "sk-secret 2026-11-15"}}'),
        role="assistant",
    )
    assert messages[0]["content"] == "*** \ufffd"
    assert messages[0]["tool_calls"][0]["arguments"] == {"***": {"k": "*** {{ date }}"}}
    assert [each.what for each in used.left] == ["half a character"]
    assert used.mask_secrets({"sk-secret": ["2026-11-15", 1]}) == {"***": ["2026-11-15", 1]}


def test_a_slug_is_a_name_for_a_file() -> None:
    assert [slug(text) for text in ("My Case: a/b?", "../..", "x" * 99)] == ["my-case-a-b", "", "x" * 60]
