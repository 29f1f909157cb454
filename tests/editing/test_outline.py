"""Which sections and parts a request has, and what counts as an option."""

from sightline.editing.outline import list_of, options_of, outline_of, tools_of, type_of
from sightline.editing.reading import DocumentReading
from sightline.model.parts import CacheBreakpoint, ToolCall
from tests.editing.bodies import said, text

TOOL = {"type": "function", "name": "f", "parameters": {}}


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
    assert outline_of(reading) == [
        ("/system", ["text:"]),
        ("/messages/0", ["text:/content/0"]),
        ("tools", ["tool:/tools/0"]),
        ("options", ["option:/model"]),
    ]
    assert outline_of(reading, "/messages/0") == [("/messages/0", ["text:/content/0"])]


def test_what_cannot_be_read_is_one_section() -> None:
    reading = DocumentReading.of("anthropic", {"messages": 5})
    assert outline_of(reading) == [("other", [])]
    assert tools_of(reading) == ()
    assert options_of(reading) == {}


def test_a_bare_list_has_no_options() -> None:
    assert outline_of(DocumentReading.of("raw", [{"role": 1, "content": "a"}])) == [("/0", ["text:/content"])]


def test_tools_that_an_item_brings_are_part_of_that_item() -> None:
    items = [{"type": "additional_tools", "tools": [TOOL]}, {"role": "user", "content": "a"}]
    reading = DocumentReading.of("openai-responses", {"input": items, "tools": [TOOL]})
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
