import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.dialects.registry import NAMES, dialect
from sightline.editing.validity import argument_problems, is_same_shape, schema_problems, shape_of
from sightline.model.message import Message
from sightline.model.parts import Image, Link, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.jsontext import decode
from tests.contract.cases import Case, cases
from tests.contract.generated import TARGET, requests


def problems(request: Request) -> list[object]:
    return [*dialect(request.dialect).problems(request), *argument_problems(request), *schema_problems(request)]


def check(request: Request) -> None:
    assert problems(request) == problems(replace(request, messages=tuple(map(shape_of, request.messages))))


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
def test_the_rules_look_at_the_shape_of_real_requests_alone(case: Case) -> None:
    check(dialect(case.dialect).read_request(decode(case.file("request.json"))))


BLANK = st.sampled_from(("", " ", "\n\n", "word ", "word", "{", "{}", '{"a": 1}', "[1]"))


def spoiled(message: Message, words: list[str]) -> Message:
    """The message with other words, blank ones among them."""
    parts = tuple(
        replace(part, text=words.pop())
        if isinstance(part, Text | Thinking | Refusal)
        else replace(part, arguments=words.pop())
        if isinstance(part, ToolCall)
        else part
        for part in message.parts
    )
    return replace(message, parts=parts)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(request=requests(), data=st.data())
def test_the_rules_look_at_the_shape_of_generated_requests_alone(name: str, request, data: st.DataObject) -> None:
    written = dialect(name).read_request(dialect(name).write_request(request, TARGET, Report()))
    words = data.draw(st.lists(BLANK, min_size=60, max_size=60))
    check(replace(written, messages=tuple(spoiled(message, words) for message in written.messages)))


def shaped(*parts) -> tuple:
    return shape_of(Message("user", parts)).parts


def test_words_are_left_out_and_what_matters_stays() -> None:
    assert shaped(Text("Hello.")) == shaped(Text("Bye.")) != shaped(Text(""))
    assert shaped(Text("Hello. ")) != shaped(Text("Hello."))
    assert shaped(Text("  ")) != shaped(Text(""))
    assert shaped(Refusal("No.")) == shaped(Refusal("Never."))
    assert shaped(Thinking("a", signature="s")) != shaped(Thinking("b", signature="s"))
    assert shaped(ToolResult("c", (Text("a"),))) == shaped(ToolResult("c", (Text("b"),)))
    picture = Image(Link("https://example.com/a.png"))
    assert shaped(picture) == (picture,)


def test_arguments_are_an_object_or_not() -> None:
    def called(arguments: str, kind: str = "function") -> tuple:
        return shaped(ToolCall("c", "add", arguments, kind))

    assert called('{"a": 1}') == called("{}") != called("{")
    assert called("free text", "custom") == called("other", "custom")
    assert called("") != called("{")


def test_two_requests_have_the_same_shape_if_only_words_differ() -> None:
    first = Request(model="m", messages=(Message("user", (Text("a"),)), Message("assistant", (Text("b"),))))
    assert is_same_shape(first, replace(first, messages=(Message("user", (Text("c"),)), first.messages[1])))
    assert not is_same_shape(first, replace(first, messages=(Message("user", (Text(""),)), first.messages[1])))
    assert not is_same_shape(first, replace(first, messages=first.messages[:1]))
    assert not is_same_shape(first, replace(first, model="n"))
