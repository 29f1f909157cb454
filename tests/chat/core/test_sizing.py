from sightline.catalog.facts import Facts
from sightline.chat.core import sizing
from sightline.chat.core.pair import ChatAnswer, MessagePair, text_answer
from sightline.chat.core.settings import ChatSettings
from sightline.chat.core.sizing import Sizer
from sightline.model.message import Message
from sightline.model.parts import Image, Inline, Text, ToolCall, ToolResult
from sightline.model.request import Request
from sightline.model.tools import FunctionTool
from sightline.tokens.calibration import Ratio
from sightline.tokens.estimate import Estimate, exactly
from sightline.tokens.estimator import Estimator

EXACT = Facts(tokenizer="o200k_base", message_tokens=3, reply_tokens=3)
LETTERS = ChatSettings(estimation="characters", chars_per_token=3.5)
PAIR = MessagePair(id="a", user_text="Why is the sky blue?", answer=text_answer("Because of scattering."))


def sizer_of(facts: Facts = EXACT, settings: ChatSettings = ChatSettings(), **more) -> Sizer:  # noqa: B008
    return Sizer(facts, dialect="openai-chat", settings=settings, **more)


def test_a_pair_is_as_large_as_its_messages() -> None:
    sizer, estimator = sizer_of(), Estimator(EXACT, dialect="openai-chat")
    whole = estimator.estimate_by_rules(Request(messages=sizer.messages(PAIR))).tokens
    assert sizer.pair(PAIR).tokens + sizer.prelude("").tokens == whole
    assert sizer.cost(PAIR) == sizer.pair(PAIR).high


def test_by_characters_each_side_is_divided_and_rounded_up() -> None:
    assert sizer_of(settings=LETTERS).pair(PAIR) == exactly(6 + 7, "characters per token")
    assert sizer_of(settings=LETTERS).prelude("") == exactly(0)
    assert sizer_of(settings=LETTERS).prelude("Be short.").tokens == 3


def test_by_characters_calls_and_results_count_and_pictures_as_ever() -> None:
    messages = (
        Message("assistant", (ToolCall("c", "look_up", "{}"),)),
        Message("tool", (ToolResult("c", (Text("found"),)),)),
    )
    pair = MessagePair(id="a", user_text="x", answer=ChatAnswer(messages=messages))
    assert sizer_of(settings=LETTERS).pair(pair).tokens == 1 + 3 + 2
    seen = MessagePair(id="a", attachments=(Image(Inline("image/png", "iVBORw0KGgo=")),))
    assert sizer_of(settings=LETTERS).cost(seen) > 0


def test_the_setting_serves_models_of_which_nothing_better_is_known() -> None:
    dense, loose = ChatSettings(chars_per_token=2), ChatSettings(chars_per_token=6)
    assert sizer_of(Facts(), dense).cost(PAIR) > sizer_of(Facts(), loose).cost(PAIR)
    for facts in (EXACT, Facts(nearest_tokenizer="o200k_base"), Facts(chars_per_token=4)):
        assert sizer_of(facts, dense).cost(PAIR) == sizer_of(facts, loose).cost(PAIR)


def test_a_pair_is_counted_once_until_it_changes(monkeypatch) -> None:
    sizer = sizer_of()
    first = sizer.pair(PAIR)
    monkeypatch.setattr(Sizer, "messages", lambda *_: 1 // 0)
    assert sizer.pair(PAIR) is first
    monkeypatch.undo()
    longer = MessagePair(id="a", user_text="Why is the sky blue, and the sea too, on most days?")
    assert sizer.pair(longer) != first


def test_what_is_remembered_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(sizing, "_REMEMBERED", 2)
    sizer = sizer_of()
    for name in "abc":
        sizer.pair(MessagePair(id=name, user_text="x"))
    assert list(sizer._pairs) == ["c"]


def test_tools_are_counted() -> None:
    assert sizer_of().tool_tokens().tokens == 0
    assert sizer_of(tools=(FunctionTool("look_up", "looks", {"type": "object"}),)).tool_tokens().tokens > 0


def test_without_lessons_the_cautious_number_is_the_upper_edge() -> None:
    assert sizer_of().cautious(Estimate(100, 80, 130)) == 130
    assert sizer_of().always_added == 0


def test_what_the_provider_counted_moves_the_cautious_number() -> None:
    lesson = Ratio(factor=1.2, added=10.5, width=0.5, seen=9)
    sizer = sizer_of(calibration=lesson)
    assert sizer.cautious(exactly(100)) == 100
    assert 120 <= sizer.cautious(Estimate(100, 80, 130)) <= 140
    assert sizer.always_added == 13


def test_planned_in_pieces_is_never_less_than_planned_as_a_whole() -> None:
    lesson = Ratio(factor=0.9, added=7, width=0.4, seen=3)
    sizer = sizer_of(Facts(), calibration=lesson)
    pairs = [MessagePair(id=str(n), user_text="some words " * n, answer=text_answer("more " * n)) for n in range(1, 9)]
    whole = lesson.correct(
        Estimator(Facts(chars_per_token=3.5), dialect="openai-chat").estimate_by_rules(
            Request(messages=tuple(message for pair in pairs for message in sizer.messages(pair)))
        )
    )
    pieces = sum(map(sizer.cost, pairs)) + sizer.cautious(sizer.prelude("")) + sizer.always_added
    assert pieces >= whole.high


def test_what_is_learned_later_changes_the_cautious_number_and_no_count() -> None:
    sizer = sizer_of(Facts())
    estimate = sizer.pair(PAIR)
    wiser = sizer.with_calibration(Ratio(2.0, 0.0, 1.0, 9))
    assert wiser.pair(PAIR) is estimate
    assert wiser.cost(PAIR) > sizer.cost(PAIR) == estimate.high
