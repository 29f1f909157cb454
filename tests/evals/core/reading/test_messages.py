import pytest

from sightline.evals.core.reading.messages import take_call
from sightline.evals.core.suite import CallSegment, CaseMessage, FileSegment, ImageSegment, SuitePlace, TextSegment
from tests.evals.core.reading.stage import FILE, case, one, problem, read, told


def conversation(calls: str, *results: str) -> tuple[CaseMessage, ...]:
    lines = ["input:", "  - {role: user, content: go}", f"  - {{role: assistant, tool_calls: {calls}}}"]
    lines += [f"  - {{role: tool, content: {each}}}" for each in results]
    return case("\n".join(lines)).messages


@pytest.mark.parametrize(
    "written",
    [
        "{name: look, arguments: {at: 1}, id: c1}",
        "{tool: look, input: {at: 1}, id: c1}",
        "{name: look, args: {at: 1}, id: c1}",
        "{id: c1, type: function, function: {name: look, arguments: {at: 1}}}",
    ],
)
def test_a_call_is_read_in_each_of_its_spellings(written: str) -> None:
    (call,) = conversation(f"[{written}]", "seen")[1].segments
    assert isinstance(call, CallSegment)
    assert (call.name, call.arguments, call.id) == ("look", {"at": 1}, "c1")


def test_arguments_may_be_the_models_own_text_or_none() -> None:
    first, second = conversation("[{name: a, arguments: '{\"x\":  1}'}, {name: b}]", "one", "two")[1].segments
    assert isinstance(first, CallSegment)
    assert isinstance(second, CallSegment)
    assert (first.arguments, second.arguments) == ('{"x":  1}', {})


def test_an_output_beside_its_call_becomes_the_result_that_follows() -> None:
    messages = conversation("[{tool: a, id: c1, output: sunny}, {tool: b, output: {t: 3}}]")
    assert [(each.role, each.name, each.call_id) for each in messages[2:]] == [("tool", "a", "c1"), ("tool", "b", "")]
    assert [each.segments[0].text for each in messages[2:]] == ["sunny", '{"t":3}']  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ("x", "tool_calls must be a list"),
        ("[x]", "a call must be a mapping"),
        ("[{arguments: {}}]", "names no tool"),
        ("[{name: a, function: x}]", "function must be a mapping"),
        ("[{function: {nme: a}}]", 'function has no key "nme"'),
        ("[{nam: a, name: a}]", 'a call has no key "nam"'),
        ("[{type: custom, name: a}]", 'type must be one of "function", "tool_call"'),
        ("[{name: a, arguments: {}, input: {x: 1}}]", "input is another name of arguments"),
        ("[{name: a, arguments: [1]}]", "arguments must be a mapping or text"),
    ],
)
def test_a_call_that_cannot_be_made_is_refused(calls: str, words: str) -> None:
    body = f"input:\n  - {{role: user, content: go}}\n  - {{role: assistant, content: x, tool_calls: {calls}}}"
    found = [each for each in read(one(body)).problems if words in each.message]
    assert found, [told(each) for each in read(one(body)).problems]
    assert found[0].severity == "error"


def test_call_keys_that_are_not_sent_are_reported() -> None:
    body = (
        "input:\n  - {role: user, content: go}\n  - role: assistant\n    tool_calls: [{name: a, status: ok, output: x}]"
    )
    (found,) = read(one(body)).problems
    assert found.severity == "warning"
    assert "status of a call is not sent" in found.message


FILES = {"suites/a.md": b"A", "suites/p.png": b"P"}


def words(body: str) -> list[tuple[str, list[str]]]:
    """Roles and what they say."""
    return [
        (message.role, [segment.text for segment in message.segments if isinstance(segment, TextSegment)])
        for message in case(body).messages
    ]


def test_a_text_is_what_the_user_says() -> None:
    (message,) = case("input: hello").messages
    assert message.role == "user"
    assert message.segments == (TextSegment("hello", SuitePlace(FILE, 4, 12)),)


def test_an_object_is_one_message_or_is_written_as_json() -> None:
    assert words("input: {role: system, content: be kind}") == [("system", ["be kind"])]
    assert words("input: {city: Bern, days: [1]}") == [("user", ['{\n  "city": "Bern",\n  "days": [\n    1\n  ]\n}'])]


def test_every_role_is_carried() -> None:
    roles = ["system", "developer", "user", "assistant", "tool"]
    body = "input:\n" + "".join(f"  - {{role: {role}, content: {role} says}}\n" for role in roles)
    assert words(body) == [(role, [f"{role} says"]) for role in roles]


def test_parts_are_texts_files_images_and_calls() -> None:
    body = """input:
  - role: assistant
    name: ada
    content:
      - bare
      - {type: text, value: full}
      - {type: text, text: with the key of another interface}
      - {type: file, value: ./a.md}
      - {type: image, value: p.png}
      - {type: image, value: 'https://x/y.png'}
      - {type: image_url, image_url: {url: 'data:image/png;base64,AA'}}
      - {type: image_url, image_url: 'https://x/z.png'}
      - {type: tool_call, name: look, arguments: {at: 1}, id: c1}
  - {role: tool, tool_call_id: c1, content: seen}
"""
    message, result = case(body, FILES).messages
    assert message.name == "ada"
    assert [(type(each), getattr(each, "text", getattr(each, "path", ""))) for each in message.segments] == [
        (TextSegment, "bare"),
        (TextSegment, "full"),
        (TextSegment, "with the key of another interface"),
        (FileSegment, "a.md"),
        (ImageSegment, "p.png"),
        (ImageSegment, "https://x/y.png"),
        (ImageSegment, "data:image/png;base64,AA"),
        (ImageSegment, "https://x/z.png"),
        (CallSegment, ""),
    ]
    assert result.call_id == "c1"


@pytest.mark.parametrize(
    ("body", "words", "hint"),
    [
        ("input: 3", "text or a list of messages", "role: user"),
        ("input: ''", "the text is empty", ""),
        ("input: [hello]", "a message must be a mapping", "role: user"),
        ("input: [{content: x}]", 'lacks the key "role"', "role: user"),
        ("input: [{role: function, content: x}]", 'not "function"', '"tool"'),
        ("input: [{role: usr, content: x}]", 'not "usr"', '"user"'),
        ("input: [{role: 3, content: x}]", "not 3", "role: user"),
        ("input: [{role: user, text: x, content: y}]", 'no key "text"', '"content"'),
        ("input: [{role: user, content: 3}]", "content must be text or parts", "quotes"),
        ("input: [{role: user, content: {type: text, value: x}}]", "a part stands where", "dash"),
        ("input: [{role: user, content: [3]}]", "content[0] must be a mapping", "type: text"),
        ("input: [{role: user, content: [x, {value: y}]}]", 'lacks the key "type"', '"text"'),
        ("input: [{role: user, content: [x, {type: input_text, text: y}]}]", '"input_text"', '"text"'),
        ("input: [{role: user, content: [x, {type: txt, value: y}]}]", '"txt"', '"text"'),
        ("input: [{role: user, content: [x, {type: file, path: y}]}]", 'no key "path"', '"value"'),
        ("input: [{role: user, content: [x, {type: text, value: y, text: z}]}]", "another name of value", "Keep"),
        ("input: [{role: user, content: [x, {type: text, value: 3}]}]", "needs text as its value", "value"),
        ("input: [{role: user, content: [x, {type: image_url}]}]", 'lacks the key "image_url"', "type: image"),
        ("input: [{role: user, content: [x, {type: image_url, image_url: {url: 3}}]}]", "needs text as its", "value"),
        ("input: [{role: user, content: [x, {type: image_url, image_url: {url: 'https://x', detail: low}}]}]",
         'no key "detail"', "url"),
        ("input: [{role: user, content: [x, {type: file, value: ~/x}]}]", "absolute", "relative"),
        ("input: [{role: user, content: [x, {type: image, value: 'C:/x'}]}]", "absolute", "relative"),
        ("input: [{role: user, content: [x, {type: file, value: /etc/x}]}]", "no file", "for suites/etc/x, etc/x."),
        ("input: [{role: user, content: x, tool_call_id: c}]", "a user message has a tool_call_id", "tool message"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_message_is_refused(body: str, words: str, hint: str) -> None:
    found = [each for each in read(one(body)).problems if words in each.message]
    assert found, [told(each) for each in read(one(body)).problems]
    assert found[0].severity == "error"
    assert hint in found[0].suggestion
    assert found[0].place.line == 4
    assert found[0].path.startswith("tests[0]")


def test_tool_calls_of_other_roles_than_assistant_are_refused() -> None:
    body = "input:\n  - {role: user, content: x, tool_calls: [{name: f, output: y}]}"
    assert "a user message has tool_calls" in problem(one(body)).message


def test_empty_message_is_reported_and_not_sent() -> None:
    found = problem(one("input:\n  - {role: system, content: ' '}\n  - {role: user, content: x}"))
    assert found.severity == "warning"
    assert found.message == "the system message is empty: it is not sent"


def test_a_list_of_files_holds_paths() -> None:
    body = "input: read them\ninput_files: [a.md, 3, ~/x]"
    assert [each.message for each in read(one(body), FILES).problems] == [
        "a path is expected, not a number",
        'the path "~/x" is absolute: it would be another on every machine',
    ]


def test_a_path_that_begins_with_a_slash_starts_at_the_repository_as_in_agentv() -> None:
    found = case("input: [{role: user, content: [{type: file, value: /docs/rules.md}]}]", {"docs/rules.md": b"R"})
    (segment,) = found.messages[0].segments
    assert isinstance(segment, FileSegment)
    assert (segment.path, segment.resolved) == ("docs/rules.md", "docs/rules.md")


GO = "  - {role: user, content: go}\n"
CALLS = "  - {role: assistant, tool_calls: [{name: a, id: c1}, {name: b}]}\n"


@pytest.mark.parametrize(
    "rest",
    [
        "  - {role: tool, tool_call_id: c1, content: x}\n  - {role: tool, content: y}\n",
        "  - {role: tool, name: b, content: x}\n  - {role: tool, content: y}\n  - {role: user, content: on}\n",
        "  - {role: tool, content: x}\n  - {role: system, content: note}\n  - {role: tool, content: y}\n",
        "turns:\n  - input: [{role: tool, content: x}, {role: tool, content: y}]\n",
    ],
)
def test_calls_that_are_answered_are_fine(rest: str) -> None:
    assert not read(one("input:\n" + GO + CALLS + rest)).problems


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("", 'the call of "b" has no result'),
        ("  - {role: user, content: on}\n", 'the call of "a" has no result'),
        ("  - {role: tool, tool_call_id: c2, content: x}\n", 'no call before it has the id "c2"'),
    ],
)
def test_calls_without_results_and_results_without_calls_are_errors(rest: str, words: str) -> None:
    reading = read(one("input:\n" + GO + CALLS + rest))
    assert reading.suite is None
    assert any(words in told(each) for each in reading.problems)


def test_unknown_call_id_lists_the_pending_calls() -> None:
    by_id = "  - {role: tool, tool_call_id: c9, content: x}\n"
    hints = [each.suggestion for each in read(one("input:\n" + GO + CALLS + by_id)).problems]
    assert "Calls that wait: c1." in hints
    hints = [each.suggestion for each in read(one("input:\n" + GO + by_id)).problems]
    assert hints == ["Write the call into tool_calls of the message before."]


def test_result_without_a_call_is_a_warning() -> None:
    reading = read(one("input:\n" + GO + "  - {role: tool, content: sunny}\n"))
    assert reading.suite is not None
    assert [each.severity for each in reading.problems] == ["warning"]


def test_a_result_answers_by_id_then_by_name_then_in_order() -> None:
    first, second = CallSegment("a", id="1"), CallSegment("b", id="2")
    assert take_call(CaseMessage(role="tool", call_id="2"), [first, second]) is second
    assert take_call(CaseMessage(role="tool", call_id="3"), [first, second]) is None
    assert take_call(CaseMessage(role="tool", name="b"), [first, second]) is second
    assert take_call(CaseMessage(role="tool", name="z"), [first, second]) is first
    assert take_call(CaseMessage(role="tool"), []) is None
