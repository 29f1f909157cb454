"""The rules of structured message delivery: its decisions 1 to 7, its edge cases 1 to 7, and each way in which content
was seen to get lost elsewhere, from the text of a suite to the messages and the body that a provider is sent."""

import base64
import re
from collections.abc import Mapping

import pytest

from sightline.dialects.dialect import SystemPolicy, Target
from sightline.dialects.translate import write_request
from sightline.evals.core.delivery import Delivery, deliver, turn_messages
from sightline.evals.core.target import FileForm
from sightline.model.json import Json
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Message, Request
from sightline.wire import jsontext
from tests.evals.core.reading.stage import case
from tests.picture_files import png

PNG = base64.b64decode(png(2, 2))
GUIDELINE = "rules/style.instructions.md"
FILES = {
    f"suites/{GUIDELINE}": b"Write plainly.\r\n",
    "suites/notes/data.csv": b"a,b\r\n1,2\r\n",
    "suites/p.png": PNG,
    "suites/d.pdf": b"%PDF-1.7",
}
PATTERNS = ["**/*.instructions.md"]


def delivered(
    body: str,
    policy: SystemPolicy = "in_place",
    *,
    patterns: list[str] | None = None,
    form: FileForm = "xml",
    files: Mapping[str, bytes] = FILES,
) -> Delivery:
    found = case(body, files)
    return deliver(
        found.messages,
        files,
        policy,
        system_prompt=found.system_prompt,
        guideline_patterns=PATTERNS if patterns is None else patterns,
        file_form=form,
    )


def told(delivery: Delivery) -> list[tuple[str, list[str]]]:
    return [(message.role, [_word(part) for part in message.parts]) for message in delivery.messages]


def _word(part: Part) -> str:
    match part:
        case Text():
            return part.text
        case ToolCall():
            return f"{part.id}: {part.name}({part.arguments})"
        case ToolResult():
            return f"{part.id} = {' '.join(map(_word, part.parts))}"
        case _:
            return type(part).__name__


def body_of(messages: tuple[Message, ...], dialect: str = "openai-chat") -> Json:
    report = Report()
    body = jsontext.decode(write_request(Request("m", messages), dialect, Target(), report))
    assert not [loss for loss in report.losses if loss.severity == "content"], report.losses
    return body


TALK = f"""metadata: {{systemPrompt: You are a reviewer.}}
input:
  - role: system
    content: Be brief.
  - role: user
    content:
      - {{type: text, value: Review this.}}
      - {{type: file, value: {GUIDELINE}}}
      - {{type: file, value: notes/data.csv}}
  - {{role: assistant, content: Which part?}}
  - {{role: system, content: The user is in a hurry.}}
  - {{role: user, content: All of it.}}
"""
RULES = '[[ ## Guidelines ## ]]\n\n<file path="rules/style.instructions.md">\nWrite plainly.\n</file>'


# --- decisions ------------------------------------------------------------------------------------


def test_decision_1_messages_reach_the_provider_as_messages() -> None:
    roles = [message["role"] for message in body_of(delivered(TALK).messages)["messages"]]
    assert roles == ["system", "user", "assistant", "system", "user"]


def test_decision_2_role_markers_are_for_logs_and_never_sent() -> None:
    delivery = delivered(TALK)
    assert re.findall(r"^@\[\w+\]:$", delivery.question, re.MULTILINE) == [
        "@[System]:", "@[System]:", "@[User]:", "@[Assistant]:", "@[System]:", "@[User]:",
    ]  # fmt: skip
    assert "@[" not in jsontext.encode(body_of(delivery.messages)).decode()


def test_decision_3_a_guideline_is_taken_from_every_role_and_only_once() -> None:
    body = "input:\n" + "".join(
        f"  - {{role: {role}, content: [see, {{type: file, value: {GUIDELINE}}}]}}\n"
        for role in ("system", "user", "assistant")
    )
    words = told(delivered(body))
    assert words[0] == ("system", [f"{RULES}\n\nsee\n<Attached: {GUIDELINE}>"])
    assert words[1:] == [(role, [f"see\n<Attached: {GUIDELINE}>"]) for role in ("user", "assistant")]


@pytest.mark.parametrize("policy", ["in_place", "merge_leading", "merge_all"])
def test_decision_4_the_order_is_system_prompt_guidelines_explicit_system(policy: SystemPolicy) -> None:
    first = told(delivered(TALK, policy))[0]
    rest = "\n\nThe user is in a hurry." if policy == "merge_all" else ""
    assert first == ("system", [f"You are a reviewer.\n\n{RULES}\n\nBe brief.{rest}"])


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_decision_5_every_dialect_gets_the_structure(dialect: str) -> None:
    text = jsontext.encode(body_of(delivered(TALK, "merge_all").messages, dialect)).decode()
    assert text.index("Be brief.") < text.index("Review this.") < text.index("Which part?") < text.index("All of it.")


def test_decision_5_agents_get_the_flat_question_with_all_of_the_files() -> None:
    question = delivered(TALK).question
    assert "Write plainly." in question
    assert "a,b\n1,2" in question


# --- edge cases -----------------------------------------------------------------------------------


def test_edge_case_3_without_patterns_all_files_stand_inline() -> None:
    words = told(delivered(TALK, patterns=[]))
    assert words[0] == ("system", ["You are a reviewer.\n\nBe brief."])
    assert f'<file path="{GUIDELINE}">\nWrite plainly.\n</file>' in words[1][1][0]


def test_edge_case_7_a_thousand_segments_are_looked_up_once_each() -> None:
    files = {f"suites/f{number}.md": b"x" for number in range(1000)}
    parts = ", ".join(f"{{type: file, value: f{number}.md}}" for number in range(1000))
    delivery = delivered(f"input: [{{role: user, content: [{parts}]}}]", files=files)
    assert len([note for note in delivery.notes if note.kind == "inlined"]) == 1000


# --- what was seen to get lost elsewhere ----------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        pytest.param("input: hello", [("user", ["hello"])], id="one text gets no system message"),
        pytest.param(
            "input: [{role: system, content: S}]", [("system", ["S"])], id="a system message alone is sent once"
        ),
        pytest.param(
            "input: [{role: user, content: a}, {role: user, content: b}]",
            [("user", ["a"]), ("user", ["b"])],
            id="two users stay two",
        ),
        pytest.param(
            "input: [{role: user, content: u}, {role: system, content: ''}, {role: tool, content: ' '}]",
            [("user", ["u"])],
            id="what is blank is not sent bare",
        ),
        pytest.param(
            "input: [{role: user, content: {a: [1]}}]",
            [("user", ['{\n  "a": [\n    1\n  ]\n}'])],
            id="an object is JSON",
        ),
        pytest.param(
            "input: [{role: user, content: [{type: text, text: x}]}]", [("user", ["x"])], id="text under the other key"
        ),
        pytest.param(
            "metadata: {systemPrompt: P}\ninput: hi",
            [("system", ["P"]), ("user", ["hi"])],
            id="the prompt of the metadata",
        ),
        pytest.param(
            "input: [{role: user, content: u}, {role: assistant, content: 'It is'}]",
            [("user", ["u"]), ("assistant", ["It is"])],
            id="an assistant at the end",
        ),
        pytest.param(
            f"input: [{{role: user, content: [{{type: file, value: {GUIDELINE}}}]}}]",
            [("system", [RULES]), ("user", [f"<Attached: {GUIDELINE}>"])],
            id="a guideline alone leaves its marker",
        ),
    ],
)
def test_loss_nothing_is_added_or_lost(body: str, sent: list[tuple[str, list[str]]]) -> None:
    assert told(delivered(body)) == sent


def test_loss_a_later_system_and_a_tool_do_not_turn_into_assistants() -> None:
    body = """input:
  - {role: system, content: s}
  - {role: user, content: [{type: file, value: notes/data.csv}, {type: file, value: notes/data.csv}, text]}
  - {role: assistant, content: a}
  - {role: system, content: later}
  - {role: tool, content: result}
  - {role: user, content: u}
"""
    delivery = delivered(body)
    roles = [role for role, _ in told(delivery)]
    assert roles == ["system", "user", "assistant", "system", "assistant", "tool", "user"]
    assert told(delivery)[4] == ("assistant", ["call_1: tool({})"])
    assert "added" in [note.kind for note in delivery.notes]


def test_loss_the_developer_role_is_carried() -> None:
    delivery = delivered("input: [{role: developer, content: d}, {role: user, content: u}]")
    assert body_of(delivery.messages)["messages"][0] == {"role": "developer", "content": "d"}


def test_loss_parts_of_a_live_turn_are_parts_and_no_path_of_this_machine_is_sent() -> None:
    found = case("turns:\n  - input: [look, {type: file, value: notes/data.csv}]\n  - input: on\n", FILES)
    delivery = deliver(turn_messages(found, 0, []), FILES)
    assert told(delivery) == [("user", ['look\n<file path="notes/data.csv">\na,b\n1,2\n</file>'])]
    assert "suites/" not in jsontext.encode(body_of(delivery.messages)).decode()
