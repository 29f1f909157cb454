"""Edits that fix a problem."""

from typing import Any

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Problem
from sightline.editing.draft import Draft
from sightline.editing.fixes import fixes_for, part_at, remedies, section_of
from sightline.editing.operations import Batch, Set
from sightline.editing.validity import ValidityFinding, check_draft
from sightline.wire.pointer import resolve
from tests.editing.conversations import chat, claude, drafted


def fixed(draft: Draft, problem: Problem, facts: Facts | None = None) -> dict[str, Draft]:
    return {
        fix.label: draft.with_edit(Batch(operations=fix.operations))
        for fix in fixes_for(draft, problem, facts or Facts(), iter(range(9)))
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


OBJECT = {"type": "object", "properties": {}, "additionalProperties": False}


def responses(*tools: Any, **more: Any) -> Draft:
    return drafted({"model": "m", "input": "hi", "tools": list(tools), **more}, "openai-responses")


def chat_draft(*tools: Any, **more: Any) -> Draft:
    messages = [{"role": "user", "content": "hi"}]
    document = {"model": "m", "messages": messages, **({"tools": list(tools)} if tools else {}), **more}
    return drafted(document, "openai-chat")


def claude_draft(**more: Any) -> Draft:
    messages = more.pop("messages", [{"role": "user", "content": "hi"}])
    return drafted({"model": "m", "max_tokens": 99, "messages": messages, **more}, "anthropic")


def problems(draft: Draft, facts: Facts) -> tuple[ValidityFinding, ...]:
    return check_draft(draft, facts=facts, is_vendor=True).problems


def mended(draft: Draft, pointer: str, label: str, facts: Facts | None = None) -> Draft:
    """The draft after one click, which must take away that problem and bring none."""
    facts = facts or Facts()
    before = problems(draft, facts)
    (finding,) = [each for each in before if each.pointer == pointer and label in [fix.label for fix in each.fixes]]
    (fix,) = [fix for fix in finding.fixes if fix.label == label]
    after = draft.with_edit(Batch(operations=fix.operations))
    left = [(each.pointer, each.message) for each in problems(after, facts)]
    assert len(left) < len(before)
    assert set(left) <= {(each.pointer, each.message) for each in before}
    return after


def test_strict_schemas_are_put_right_level_by_level() -> None:
    inner = {"type": "object", "properties": {"c": {"type": "integer"}}}
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": inner,
            "d": {"enum": ["x"], "type": "string"},
            "e": {"anyOf": [{"type": "string"}]},
            "f": True,
            "g": {"type": "null"},
        },
        "required": ["a"],
        "additionalProperties": {"type": "string"},
    }
    for draft, at in (
        (responses({"type": "function", "name": "f", "parameters": schema, "strict": True}), "/tools/0/parameters"),
        (
            chat_draft({"type": "function", "function": {"name": "f", "parameters": schema, "strict": True}}),
            "/tools/0/function/parameters",
        ),
    ):
        draft = mended(draft, f"{at}/properties/b", "Say additionalProperties false")
        draft = mended(draft, f"{at}/properties/b", "Require all")
        draft = mended(draft, at, "Require all, optional ones may be null")
        draft = mended(draft, at, "Say additionalProperties false")
        fixed: Any = resolve(draft.document, at)
        assert fixed["required"] == ["a", "b", "d", "e", "f", "g"]
        assert fixed["additionalProperties"] is False
        properties = fixed["properties"]
        assert properties["a"] == {"type": "string"}
        assert properties["b"]["type"] == ["object", "null"]
        assert properties["d"] == {"enum": ["x", None], "type": ["string", "null"]}
        assert properties["e"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
        assert properties["f"] is True
        assert properties["g"] == {"type": "null"}
        draft = mended(draft, f"{at}/properties/f", "Do not be strict")  # what may be anything cannot be strict
        assert problems(draft, Facts()) == ()


STRICT_PLACES = [
    ("openai-responses", "tools", "/tools/0/parameters"),
    ("openai-chat", "tools", "/tools/0/function/parameters"),
    ("openai-responses", "text", "/text/format/schema"),
    ("openai-chat", "response_format", "/response_format/json_schema/schema"),
]


@pytest.mark.parametrize(("dialect", "field", "at"), STRICT_PLACES)
def test_a_whole_schema_is_made_strict_in_one_step(dialect: str, field: str, at: str) -> None:
    # A property that is called like the place of a schema is not taken for one.
    inner = {"properties": {"parameters": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}, "required": ["x"]}
    schema: Any = {"type": "object", "properties": {"a": inner, "b": {"type": "string", "default": "x"}}}
    holder = {"name": "f", "strict": True}
    values: dict[str, Any] = {
        "/tools/0/parameters": [{"type": "function", **holder, "parameters": schema}],
        "/tools/0/function/parameters": [{"type": "function", "function": {**holder, "parameters": schema}}],
        "/text/format/schema": {"format": {"type": "json_schema", **holder, "schema": schema}},
        "/response_format/json_schema/schema": {"type": "json_schema", "json_schema": {**holder, "schema": schema}},
    }
    draft = (responses if dialect == "openai-responses" else chat_draft)(**{field: values[at]})
    for place in (at, f"{at}/properties/a", f"{at}/properties/a/properties/parameters/oneOf"):
        for label in ("Make the whole schema strict", "Do not be strict"):
            fixes = [fix for each in problems(draft, Facts()) if each.pointer == place for fix in each.fixes]
            fix = next(fix for fix in fixes if fix.label == label)
            after = draft.with_edit(Batch(operations=fix.operations))
            assert [each.message for each in problems(after, Facts()) if "strict" in each.message] == []


@pytest.mark.parametrize(
    ("kind", "label", "fixed"),
    [
        ("strin", "Say string", "string"),
        ("INT", "Say integer", "integer"),
        (["float", "null"], "Say number, null", ["number", "null"]),
        ("dict", "Say object", "object"),
    ],
)
def test_a_type_gets_the_name_that_it_has(kind: Any, label: str, fixed: Any) -> None:
    schema = {**OBJECT, "properties": {"a": {"type": kind}}}
    at = "/tools/0/parameters/properties/a/type"
    draft = mended(responses({"type": "function", "name": "f", "parameters": schema}), at, label)
    assert resolve(draft.document, at) == fixed


def test_unknown_schema_type_offers_only_dropping_the_tool() -> None:
    draft = responses({"type": "function", "name": "f", "parameters": {**OBJECT, "properties": {"a": {"type": "qux"}}}})
    (finding,) = problems(draft, Facts())
    assert [fix.label for fix in finding.fixes] == ["Drop this tool"]


def test_a_tool_is_written_in_the_form_of_its_api() -> None:
    grammar = {"syntax": "lark", "definition": "start: /a/"}
    function = {"name": "f", "parameters": OBJECT}
    custom = {"name": "c", "format": {"type": "grammar", "grammar": grammar}}
    flat_custom = {"type": "custom", "name": "c", "format": {"type": "grammar", **grammar}}
    nested = ({"type": "function", "function": function}, {"type": "custom", "custom": custom})
    draft = mended(mended(responses(*nested), "/tools/0", "Write it flat"), "/tools/1", "Write it flat")
    assert resolve(draft.document, "/tools") == [{"type": "function", **function}, flat_custom]
    assert problems(draft, Facts()) == ()
    flat = ({"type": "function", **function}, flat_custom)
    draft = mended(
        mended(chat_draft(*flat), "/tools/0", "Write it under function"), "/tools/1", "Write it under custom"
    )
    assert resolve(draft.document, "/tools") == list(nested)
    (remedy,) = remedies(chat_draft({"type": "custom", "name": "c"}), "/tools/0", "tool_form", Facts())
    assert remedy.operations[0].value == {"type": "custom", "custom": {"name": "c"}}  # type: ignore[union-attr]


def test_a_grammar_gets_a_syntax_that_there_is() -> None:
    tool = {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "ebnf", "definition": "x"}}
    draft = mended(responses(tool), "/tools/0/format/syntax", "Say lark")
    assert problems(draft, Facts()) == ()
    assert problems(mended(responses(tool), "/tools/0/format/syntax", "Say regex"), Facts()) == ()


def test_a_tool_gets_a_name_that_is_taken_or_goes() -> None:
    draft = mended(
        responses({"type": "function", "name": "a b", "parameters": OBJECT}), "/tools/0/name", "Call it a_b_c8687a08"
    )
    assert draft.request is not None
    assert draft.request.tools[0].name == "a_b_c8687a08"  # type: ignore[union-attr]
    nameless = responses({"type": "function", "name": "", "parameters": OBJECT}, {"type": "function", "name": "f"})
    draft = mended(nameless, "/tools/0/name", "Drop this tool")
    assert resolve(draft.document, "/tools") == [{"type": "function", "name": "f"}]


@pytest.mark.parametrize(("value", "label"), [(7, "Set it to 2"), (-1, "Set it to 0")])
def test_an_option_goes_into_its_range_or_out(value: int, label: str) -> None:
    for draft in (chat_draft(temperature=value), responses(temperature=value)):
        assert mended(draft, "/temperature", label).is_dirty
        assert "temperature" not in mended(draft, "/temperature", "Leave out temperature").document  # type: ignore[operator]


def test_an_id_that_is_refused_goes_as_a_hash() -> None:
    draft = mended(claude_draft(metadata={"user_id": "a@example.com"}), "/metadata/user_id", "Send a hash of it")
    assert len(str(resolve(draft.document, "/metadata/user_id"))) == 64
    draft = mended(chat_draft(user="u" * 65), "/user", "Send a hash of it")
    assert len(str(resolve(draft.document, "/user"))) == 64


def test_thinking_becomes_what_the_model_takes() -> None:
    facts = Facts(thinking=("adaptive", "off"), efforts=("low", "high"))
    draft = claude_draft(thinking={"type": "enabled", "budget_tokens": 2000}, max_tokens=4000)
    assert mended(draft, "/thinking/budget_tokens", "Think adaptively", facts).document["thinking"] == {  # type: ignore[index,call-overload]
        "type": "adaptive"
    }
    draft = mended(claude_draft(output_config={"effort": "max"}), "/output_config/effort", "Say high", facts)
    assert resolve(draft.document, "/output_config/effort") == "high"
    old = Facts(thinking=("budget",), efforts=())
    (finding,) = problems(claude_draft(thinking={"type": "adaptive"}), old)
    assert [fix.label for fix in finding.fixes] == ["Leave out thinking"]
    (finding,) = problems(claude_draft(output_config={"effort": "max"}), old)
    assert [fix.label for fix in finding.fixes] == ["Leave out output_config"]


def test_a_refused_option_is_left_out() -> None:
    facts = Facts(refuses=("temperature",))
    draft = mended(claude_draft(temperature=0.5), "/temperature", "Leave out temperature", facts)
    assert "temperature" not in draft.document  # type: ignore[operator]


def test_the_limit_gets_its_newer_name() -> None:
    draft = mended(
        chat_draft(max_tokens=5), "/max_tokens", "Call it max_completion_tokens", Facts(max_completion_tokens=True)
    )
    assert draft.document["max_completion_tokens"] == 5  # type: ignore[index,call-overload]
    assert "max_tokens" not in draft.document  # type: ignore[operator]


def test_a_system_message_that_the_model_does_not_take_speaks_as_the_user() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "system", "content": "now"}]
    draft = mended(claude_draft(messages=messages), "/messages/1", "Say it as the user", Facts(inline_system=False))
    assert resolve(draft.document, "/messages/1/role") == "user"


def test_a_rule_of_no_remedy_and_a_place_that_is_gone_offer_nothing() -> None:
    draft = claude_draft()
    assert list(remedies(draft, "/max_tokens", "no such rule", Facts())) == []
    assert list(remedies(draft, "/nowhere", "range", Facts())) == []
    assert list(remedies(draft, "/max_tokens", "required_properties", Facts())) == []
    assert list(remedies(draft, "/max_tokens", "tool_form", Facts())) == []
    assert list(remedies(draft, "/max_tokens", "tool_name", Facts())) == []
    assert fixes_for(draft, Problem("/nowhere", "?", rule="range"), Facts(), iter(range(9))) == ()


def test_what_is_not_strict_needs_no_remedy_for_it() -> None:
    draft = responses({"type": "function", "name": "f", "parameters": OBJECT})
    assert list(remedies(draft, "/tools/0/parameters", "strict_keyword", Facts())) == []


def test_a_tool_that_is_renamed_stays_the_one_that_is_chosen() -> None:
    named, several = {"type": "function", "name": "a b"}, [{"type": "function", "name": "a b"}]
    for choice in (named, {"type": "allowed_tools", "mode": "auto", "tools": several}):
        draft = responses({"type": "function", "name": "a b", "parameters": OBJECT}, tool_choice=choice)
        (fitting,) = (each.fixes[0].label.removeprefix("Call it ") for each in problems(draft, Facts()))
        draft = mended(draft, "/tools/0/name", f"Call it {fitting}")
        assert problems(draft, Facts()) == ()
        assert draft.data.count(f'"{fitting}"'.encode()) == 2


def test_a_choice_is_written_in_the_form_of_its_api() -> None:
    flat, nested = {"type": "function", "name": "f"}, {"type": "function", "function": {"name": "f"}}
    draft = mended(responses({**flat, "parameters": OBJECT}, tool_choice=nested), "/tool_choice", "Write it flat")
    assert resolve(draft.document, "/tool_choice") == flat
    draft = mended(chat_draft(nested, tool_choice=flat), "/tool_choice", "Write it under function")
    assert resolve(draft.document, "/tool_choice") == nested
