"""Bodies that differ in their texts alone: the same comes of them as of a translation in full."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.body_templates import LARGEST_BODY, BodyTemplates
from sightline.dialects.dialect import SystemPolicy, Target
from sightline.dialects.registry import dialect
from sightline.dialects.translate import RequestTranslation, translate_request
from sightline.errors import Fault
from tests.contract.cases import PROVIDERS, cases
from tests.examples import examples

PAIRS = [(source, target) for source in PROVIDERS for target in PROVIDERS if source != target]
PRIVATE = "x-anthropic-billing-header: cc_version=2"

words = st.one_of(
    st.sampled_from(
        ("", " ", "\n", "words", "words ", 'a "quote"', "é😀", "\ud83d", "\0", "\\", f"{PRIVATE}\nYou are")
    ),
    st.text(max_size=12),
)


def body_of(source: str, turns: list[tuple[str, str]], **more: Any) -> bytes:
    """A request with these roles and texts, in a dialect."""
    if source == "openai-chat":
        document = {"model": "m", "messages": [{"role": role, "content": text} for role, text in turns]}
    elif source == "openai-responses":
        said = [{"role": role, "content": [{"type": "input_text", "text": text}]} for role, text in turns]
        document = {"model": "m", "input": said}
    elif source == "gemini":
        document = {"contents": [{"role": role, "parts": [{"text": text}]} for role, text in turns if role != "system"]}
        system = [{"text": text} for role, text in turns if role == "system"]
        document |= {"systemInstruction": {"parts": system}} if system else {}
    else:
        said = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in turns if role != "system"]
        system = [{"type": "text", "text": text} for role, text in turns if role == "system"]
        document = {"model": "m", "max_tokens": 64, "messages": said, "system": system}
    return json.dumps(document | more, ensure_ascii=False).encode("utf-8", "surrogatepass")


class Route:
    """Bodies of one dialect go to another; `full` counts those that were translated in full."""

    def __init__(self, source: str, target: str, system: SystemPolicy = "in_place") -> None:
        self.source, self.target, self.system = source, target, system
        self.templates = BodyTemplates()
        self.full = 0

    def in_full(self, body: bytes) -> RequestTranslation:
        self.full += 1
        settings = Target(self.system, provider="acme")
        return translate_request(body, self.source, self.target, model="other", settings=settings)

    def translate(self, body: bytes) -> RequestTranslation:
        return self.templates.translate(body, self.in_full, dialect(self.source).unread.private_lines)

    def check(self, body: bytes) -> bool:
        """Whether it was translated without a look at it, and as in full."""
        try:
            expected = self.in_full(body)
        except Fault as fault:
            with pytest.raises(Fault, match=re.escape(fault.message)):
                self.translate(body)
            return False
        before = self.full
        found = self.translate(body)
        is_quick = self.full == before
        assert found.data == expected.data
        assert found.report.losses == expected.report.losses
        assert found.report.additions == expected.report.additions
        assert found.request == expected.request
        return is_quick


def roles_of(source: str) -> st.SearchStrategy[str]:
    return st.sampled_from(("system", "user", "model") if source == "gemini" else ("system", "user", "assistant"))


@pytest.mark.parametrize(("source", "target"), PAIRS)
@settings(max_examples=examples(12))
@given(data=st.data())
def test_the_same_comes_of_bodies_of_one_shape(source: str, target: str, data: st.DataObject) -> None:
    roles = data.draw(st.lists(roles_of(source), min_size=1, max_size=4))
    more = data.draw(st.sampled_from(({}, {"temperature": 0.5}, {"stream": True, "unknown": {"text": "x"}})))
    route = Route(source, target, data.draw(st.sampled_from(("in_place", "merge_leading", "merge_all"))))
    for _ in range(4):
        turns = [(role, data.draw(words)) for role in roles]
        try:
            route.check(body_of(source, turns, **more))
        except UnicodeEncodeError:  # the full way cannot say half a letter in its report
            return


@pytest.mark.parametrize("case", cases("request.json"), ids=str)
def test_the_same_comes_of_every_request_that_comes_again(case: Any) -> None:
    for target in PROVIDERS:
        if target != case.dialect and case.dialect != "raw":
            route = Route(case.dialect, target)
            for _ in range(3):
                route.check(case.file("request.json"))


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_the_third_body_of_a_shape_is_not_read(source: str, target: str) -> None:
    route = Route(source, target)
    took = [route.check(body_of(source, [("system", f"Be {n}."), ("user", f'Say "{n}"\n')])) for n in "abcd"]
    assert took == [False, False, True, True]


CHAT = ("openai-chat", "anthropic")
TURNS = [("system", "Be terse."), ("user", "Hello")]


@pytest.mark.parametrize(
    "odd",
    [
        body_of("openai-chat", [("system", "Be terse."), ("user", " ")]),
        body_of("openai-chat", [("system", "Be terse."), ("user", "")]),
        body_of("openai-chat", [("system", "Be terse."), ("user", "\ud83d")]),
        body_of("openai-chat", TURNS).replace(b"Hello", b"\\ud83d"),
        body_of("openai-chat", TURNS).replace(b"Hello", b"\\q"),
    ],
)
def test_a_text_that_a_translation_looks_at_is_translated_in_full(odd: bytes) -> None:
    route = Route(*CHAT)
    for _ in range(3):
        route.check(body_of("openai-chat", TURNS))
    assert not route.check(odd)
    assert route.check(body_of("openai-chat", TURNS))


def test_so_is_a_line_for_one_provider_alone() -> None:
    route = Route("anthropic", "openai-chat")
    for _ in range(3):
        assert route.check(body_of("anthropic", TURNS)) in (False, True)
    assert route.check(body_of("anthropic", TURNS))
    assert not route.check(body_of("anthropic", [("system", f"{PRIVATE}\nBe terse."), ("user", "Hello")]))


@pytest.mark.parametrize(
    "body",
    [
        body_of("openai-chat", [("user", "Hello"), ("assistant", "Hi ")]),
        body_of("openai-chat", [("user", "Hello"), ("assistant", "Hi "), ("system", "Be terse.")]),
        body_of("openai-chat", TURNS, tools=[{"type": "function", "function": {"name": "f"}}]),
        body_of("openai-chat", TURNS, functions=[{"name": "f", "parameters": {"type": "object"}}]),
        body_of("openai-chat", TURNS, metadata={"content": "kept elsewhere"}),
        body_of("openai-chat", TURNS, user="⟨text 0 of a template⟩"),
        body_of("openai-chat", TURNS, user="x" * 5000),
        body_of("openai-chat", [("user", "x" * LARGEST_BODY)]),
        body_of("openai-chat", []),
        body_of("openai-chat", [("nobody", "Hello")]),
        b'{"messages": [{"role": "assistant", "content": "Hi "}, {"role": "user", "content": null}]}',
        b'{"messages": [{"role": "assistant", "content": "Hi "}, {"role": "user", "content": []}]}',
        b'{"messages": [{"role": "tool", "tool_call_id": "x", "content": "found"}]}',
    ],
)
def test_a_shape_that_is_more_than_its_texts_is_translated_in_full(body: bytes) -> None:
    route = Route(*CHAT)
    assert [route.check(body) for _ in range(4)] == [False] * 4


def test_the_assistant_may_come_to_speak_last_where_system_messages_are_merged() -> None:
    route = Route(*CHAT, "merge_all")
    for _ in range(4):
        assert not route.check(body_of("openai-chat", [("assistant", "Hi "), ("system", "Be terse.")]))


def test_a_few_shapes_are_known_at_a_time() -> None:
    route = Route(*CHAT)
    for number in range(80):
        for _ in range(3):
            is_quick = route.check(body_of("openai-chat", TURNS, seed=number))
        assert is_quick
