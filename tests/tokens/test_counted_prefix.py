from sightline.model.message import Message
from sightline.model.options import Options
from sightline.model.parts import CacheBreakpoint, Text
from sightline.model.request import Request
from sightline.model.tools import FunctionTool
from sightline.tokens import counted_prefix as module
from sightline.tokens.counted_prefix import CountedPrefixes, digest_chain

USER, ASSISTANT = Message("user", (Text("hi"),)), Message("assistant", (Text("hello"),))


def chain(*messages: Message, model: str = "m", **more: object) -> list[str]:
    return digest_chain("acme", model, Request(messages=messages, **more))  # type: ignore[arg-type]


def test_a_longer_request_finds_what_was_counted_of_its_beginning() -> None:
    known = CountedPrefixes()
    known.note(chain(USER), 11)
    assert known.longest(chain(USER, ASSISTANT, USER)) == (1, 11)
    known.note(chain(USER, ASSISTANT, USER), 30)
    assert known.longest(chain(USER, ASSISTANT, USER)) == (3, 30)
    assert known.longest(chain(ASSISTANT, USER)) is None
    assert known.longest(chain()) is None


def test_another_model_tool_or_option_is_another_request() -> None:
    known = CountedPrefixes()
    known.note(chain(USER), 11)
    assert known.longest(chain(USER, model="other")) is None
    assert known.longest(chain(USER, tools=(FunctionTool("f", schema={}),))) is None
    assert known.longest(chain(USER, options=Options(previous_response_id="r"))) is None
    assert known.longest(chain(USER, options=Options(temperature=0.5))) == (1, 11)


def test_marks_for_the_cache_may_move() -> None:
    known = CountedPrefixes()
    known.note(chain(Message("user", (Text("hi"), CacheBreakpoint()))), 11)
    assert known.longest(chain(USER, Message("assistant", (Text("hello"), CacheBreakpoint())))) == (1, 11)


def test_half_a_character_has_a_digest_too() -> None:
    half = Message("user", (Text("\ud83d"),))
    assert chain(half) == chain(half) != chain(USER)


def test_the_latest_are_kept_and_merged(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(module, "_MOST", 2)
    known, other = CountedPrefixes({"a": 1, "b": 2}), CountedPrefixes({"c": 3})
    known.note(["a"], 5)
    known.merge(other)
    assert known.counts == {"a": 5, "c": 3}
    known.clear()
    assert known.counts == {}
