import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.model.parts import CacheBreakpoint, Text, ToolResult
from sightline.model.request import CustomTool, FunctionTool, JsonFormat, Message, Options, Reasoning, Request
from sightline.tokens import calibration as module
from sightline.tokens.calibration import (
    Calibration,
    CountedPrefixes,
    CountObservation,
    Lesson,
    Ratio,
    digest_chain,
    is_credible,
    learn_ratio,
)
from sightline.tokens.estimate import Estimate, exactly

KEY = Calibration.key("acme", "large", tools=False)


def guess(tokens: int) -> Estimate:
    return Estimate(tokens, round(tokens * 0.7), round(tokens * 1.3), "characters")


def taught(*pairs: tuple[int, int]) -> Calibration:
    calibration = Calibration()
    for tokens, reported in pairs:
        calibration.observe(KEY, guess(tokens), reported)
    return calibration


def ratio(calibration: Calibration) -> Ratio:
    found = calibration.ratio(KEY)
    assert found is not None
    return found


def test_nothing_is_known_before_the_first_count() -> None:
    assert Calibration().ratio(KEY) is None


def test_one_count_is_believed_half_and_the_band_keeps_the_rest() -> None:
    corrected = ratio(taught((1000, 1200))).correct(guess(1000))
    assert 1000 < corrected.tokens < 1200
    assert corrected.low <= 1000
    assert corrected.high >= 1200
    assert corrected.how == "characters, learned"


def test_many_counts_are_believed_and_narrow_the_band() -> None:
    draw = random.Random(1)
    pairs = [(tokens, round(tokens * 1.25 * draw.uniform(0.98, 1.02))) for tokens in range(500, 5000, 200)]
    learnt = ratio(taught(*pairs))
    corrected = learnt.correct(guess(3000))
    assert learnt.factor == pytest.approx(1.25, rel=0.03)
    assert corrected.tokens == pytest.approx(3750, rel=0.03)
    assert corrected.high - corrected.low < 0.5 * (guess(3000).high - guess(3000).low)


def test_hidden_prompt_is_distinguished_from_a_denser_vocabulary() -> None:
    learnt = ratio(taught(*[(tokens, round(tokens * 1.1) + 350) for tokens in (20, 90, 300, 800, 1500, 4000)]))
    assert learnt.factor == pytest.approx(1.1, abs=0.01)
    assert learnt.added == pytest.approx(350, abs=3)


def test_a_first_count_that_no_vocabulary_explains_is_a_hidden_prompt() -> None:
    learnt = ratio(taught((10, 356)))
    assert (learnt.factor, learnt.added) == (1.0, 346)


def test_requests_of_one_size_are_taken_as_a_factor() -> None:
    learnt = ratio(taught(*[(1000 + step, 1100 + step) for step in range(6)]))
    assert learnt.factor == pytest.approx(1.1, abs=0.01)
    assert learnt.added == 0


@pytest.mark.parametrize("strange", [1, 3, 40_000, 900_000])
def test_strange_counts_move_nothing(strange: int) -> None:
    usual = [(tokens, round(tokens * 1.2)) for tokens in range(400, 4400, 250)]
    clean, dirty = ratio(taught(*usual)), ratio(taught(*usual, *[(2000, strange)] * 3))
    assert dirty.factor == pytest.approx(clean.factor, rel=0.06)
    assert dirty.correct(guess(2000)).tokens == pytest.approx(2400, rel=0.06)


@pytest.mark.parametrize(
    ("estimate", "reported", "more"),
    [
        (1000, 12, {"cached": True}),  # the cached tokens are left out of it
        (0, 12, {}),
        (10, 0, {}),
        (1000, 10**400, {}),
        (1000, 10**20, {}),
        (1000, 20_000_000, {}),
        (10_000, 12, {}),
        (150_000, -3, {"window": 200_000}),
        (150_000, 0, {"window": 200_000}),
        (150_000, 200_001, {"window": 200_000}),
    ],
)
def test_a_count_that_cannot_be_meant_teaches_nothing(estimate: int, reported: int, more: dict[str, Any]) -> None:
    calibration = Calibration()
    calibration.observe(KEY, guess(estimate), reported, **more)
    assert calibration.ratio(KEY) is None
    calibration.observe(KEY, guess(1000), 990, cached=True, window=200_000)
    assert ratio(calibration).seen == 1


def test_an_exact_estimate_stays_as_it_is() -> None:
    assert ratio(taught((1000, 1200))).correct(exactly(10)) == exactly(10)


def test_a_correction_can_be_held_within_the_band() -> None:
    raw = Estimate(100, 95, 105)
    corrected = Ratio(1.5, 0, 1.0, 20).correct(raw, within_band=True)
    assert corrected.tokens == 105
    assert raw.low <= corrected.low <= corrected.high <= raw.high
    assert corrected.how == ""


def test_a_wide_band_of_another_request_stays_wide() -> None:
    learnt = ratio(taught(*[(tokens, tokens) for tokens in range(500, 5000, 250)]))
    picture_of_unknown_size = Estimate(1500, 300, 9000)
    assert learnt.correct(picture_of_unknown_size).high > 2500


@given(
    factor=st.floats(0.7, 1.6),
    added=st.integers(0, 800),
    noise=st.floats(0, 0.03),
    sizes=st.lists(st.integers(50, 50_000), min_size=6, max_size=24, unique=True),
    seed=st.integers(),
)
def test_what_was_learned_holds_what_comes_next(
    factor: float, added: int, noise: float, sizes: list[int], seed: int
) -> None:
    draw = random.Random(seed)

    def reported(tokens: int) -> int:
        return max(1, round(tokens * factor * draw.uniform(1 - noise, 1 + noise) + added))

    calibration = taught(*[(tokens, reported(tokens)) for tokens in sizes])
    corrected = ratio(calibration).correct(guess(max(sizes)))
    assert corrected.low <= max(sizes) * factor + added <= corrected.high


def test_the_latest_counts_count() -> None:
    old = [(1000 + step, 900 + step) for step in range(24)]
    new = [(1000 + step, 1300 + step) for step in range(24)]
    assert ratio(taught(*old, *new)).factor == pytest.approx(1.3, abs=0.01)


def test_models_are_forgotten_in_order_of_their_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MODELS", 2)
    calibration = Calibration()
    for model in ("a", "b", "a", "c"):
        calibration.observe(model, guess(100), 110)
        calibration.ratio(model)
    assert calibration.ratio("b") is None
    assert calibration.ratio("a") is not None


def test_what_was_learned_survives_a_restart() -> None:
    calibration = taught((100, 120), (900, 1090))
    calibration.observe("other/model", guess(5), 9)
    again = Calibration.from_json(calibration.to_json())
    assert again.to_json() == calibration.to_json()
    assert again.ratio(KEY) == calibration.ratio(KEY)
    assert Calibration.from_json(Calibration().to_json()).ratio(KEY) is None


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"version":2,"models":{}}', b'{"version":1,"models":{"a":[[1,1,1]]}}', b'{"models":{}}']
)
def test_a_damaged_file_is_a_fault_with_a_way_out(data: bytes) -> None:
    with pytest.raises(Fault) as caught:
        Calibration.from_json(data)
    assert caught.value.code is Code.CONFIG
    assert "Delete the file" in caught.value.hint


def test_observations_of_the_same_size_do_not_divide_by_nothing() -> None:
    points = [CountObservation(100, 90, 110, 120)] * 4 + [CountObservation(300, 200, 400, 360)]
    assert learn_ratio(points).factor == pytest.approx(1.2)


@pytest.mark.parametrize(
    "seen",
    [
        "[0,0,0,5],[10,0,20,-3]", "[10,8,12,1%s]" % ("0" * 400), "[1%s,8,12,9]" % ("0" * 400), "[9,10,12,9]",
        "[9,8,1%s,9]" % ("0" * 30),
    ],
)  # fmt: skip
def test_what_an_absurd_count_left_in_a_file_is_dropped(seen: str) -> None:
    data = f'{{"version":1,"models":{{"a":[{seen}],"b":[[10,8,12,11]]}}}}'.encode()
    again = Calibration.from_json(data)
    assert again.ratio("a") is None
    assert again.ratio("b") is not None


def test_what_was_seen_apart_is_put_together() -> None:
    kept, fresh = taught((1000, 1100)), taught((1000, 1300), (2000, 2600))
    fresh.observe("other", guess(10), 11)
    kept.merge(fresh)
    assert ratio(kept) == ratio(taught((1000, 1100), (1000, 1300), (2000, 2600)))
    assert kept.ratio("other") is not None
    assert not Calibration().has_seen
    assert kept.has_seen


def test_one_count_that_nothing_explains_teaches_nothing() -> None:
    """A small prompt with a picture, for which a provider reported 51,890 tokens."""
    calibration = taught((1200, 51_890))
    assert calibration.ratio(KEY) is None
    calibration.observe(KEY, guess(1000), 51_890)
    assert calibration.ratio(KEY) is None
    calibration.observe(KEY, guess(1000), 1100)
    assert ratio(calibration).seen == 1
    assert ratio(calibration).added == 0


def test_what_nothing_explains_is_believed_once_several_say_it_and_are_the_most() -> None:
    calibration = taught(*[(1000 + step, 20_000 + step) for step in range(3)])
    assert ratio(calibration).added == pytest.approx(19_000)
    assert taught(*[(1000, 20_000)] * 3, *[(1000, 1100)] * 3).ratio(KEY) == taught(*[(1000, 1100)] * 3).ratio(KEY)


def test_a_piece_of_a_request_is_scaled_without_what_is_added_once() -> None:
    lesson = Ratio(1.5, 400.0, 1.0, 1000)
    assert lesson.scale(exactly(10)) == exactly(10)
    assert lesson.scale(guess(100)).tokens == pytest.approx(150, abs=1)


def test_pictures_are_learned_apart() -> None:
    assert len({Calibration.key("a", "m", tools=t, media=m) for t in (False, True) for m in (False, True)}) == 4


def test_counts_that_were_off_all_the_same_widen_the_band_and_one_alone_does_not() -> None:
    steady = [(tokens, tokens + tokens // 50 * (-1) ** n) for n, tokens in enumerate(range(1000, 5000, 500))]
    found = ratio(taught(*steady))
    assert 0.01 < found.spread < 0.05
    assert ratio(taught(*steady, (2000, 3100))).spread < 0.05
    assert ratio(taught(*steady, (2000, 3100), (3000, 4500))).spread > 0.3
    exact = Estimate(1000, 999, 1001)
    assert found.correct(exact).high - 1000 >= 10


def test_what_a_conversation_grows_by_is_learned_by_what_it_is_made_of() -> None:
    calibration = Calibration()
    for kind, counted in (("words", 100), ("figures", 160), ("scripts", 90)):
        calibration.observe(Calibration.growth_key("acme", "large", kind), guess(100), counted)  # type: ignore[arg-type]
    shown = [(lesson.model, lesson.kind, lesson.factor) for lesson in calibration.lessons()]
    assert shown == [
        ("acme/large", "new figures", 1.6),
        ("acme/large", "new scripts", 0.9),
        ("acme/large", "new words", 1.0),
    ]
    assert len(calibration.forget("acme/large")) == 3


def test_what_was_learned_can_be_seen_and_forgotten() -> None:
    calibration = taught((1000, 1200), (1000, 90_000))
    calibration.observe(Calibration.key("acme", "large", tools=True, media=True), guess(100), 150)
    calibration.observe(Calibration.key("other", "odd", tools=True), guess(100), 90_000)
    assert calibration.lessons() == [
        Lesson(model="acme/large", kind="text", factor=1.2, added=0, seen=1, set_aside=1),
        Lesson(model="acme/large", kind="tools and media", factor=1.5, added=0, seen=1, set_aside=0),
        Lesson(model="other/odd", kind="tools", factor=1.0, added=0, seen=0, set_aside=1),
    ]
    calibration.ratio(KEY)
    assert calibration.forget("large") == ["acme/large", "acme/large+tools+media"]
    assert calibration.ratio(KEY) is None
    assert calibration.forget("nobody/else") == []
    assert calibration.forget("other/odd") == ["other/odd+tools"]
    calibration.observe(KEY, guess(100), 150)
    assert calibration.forget() == [KEY]
    assert calibration.lessons() == []


def test_a_count_that_leads_must_be_credible() -> None:
    assert is_credible(guess(1000), 1100)
    assert is_credible(guess(1000), 1100, window=1100)
    assert not is_credible(guess(1000), 1100, window=1099)
    assert not is_credible(guess(1000), 0)
    assert not is_credible(guess(1000), -5)
    assert not is_credible(guess(1000), 51_890)


USER, ASSISTANT = Message("user", (Text("hi"),)), Message("assistant", (Text("hello"),))


def chain(*messages: Message, model: str = "m", **more: object) -> list[str]:
    return digest_chain("acme", model, Request(messages=messages, **more))  # type: ignore[arg-type]


def test_a_longer_request_finds_what_was_counted_of_its_beginning() -> None:
    known = CountedPrefixes()
    assert not known.has_any
    known.note(chain(USER), 11)
    assert known.has_any
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


def test_a_request_of_ours_has_the_chain_of_what_is_read_of_its_bytes() -> None:
    result = ToolResult("c", (Text("done"),))
    tool, custom = FunctionTool("f", schema={}), CustomTool("g")
    options = Options(format=JsonFormat(), reasoning=Reasoning(effort="low"))
    ours = Request(messages=(USER, Message("tool", (result,))), tools=(tool, custom), options=options)
    read = Request(
        messages=(
            Message("user", (Text("hi", at="/messages/0/content"),), at="/messages/0", bare=True, id="m"),
            Message("tool", (ToolResult("c", (Text("done", at="/x"),), at="/y"),), at="/z"),
        ),
        tools=(
            FunctionTool("f", schema={}, at="/tools/0", cache=CacheBreakpoint()),
            CustomTool("g", at="/tools/1"),
        ),
        options=Options(
            format=JsonFormat(at="/format"), reasoning=Reasoning(effort="low", at="/r", places={"effort": "/r/effort"})
        ),
    )
    assert digest_chain("a", "m", ours) == digest_chain("a", "m", read)


def test_counts_that_frames_do_not_explain_disprove_a_vocabulary() -> None:
    framed = taught(*[(tokens, tokens - 16) for tokens in (300, 1000, 2500, 400)])
    assert not ratio(framed).disproves
    assert not ratio(taught((1000, 1016), (2000, 2600), (500, 500))).disproves, "one count alone may be a mistake"
    assert ratio(taught((1000, 1016), (2000, 2600), (500, 600))).disproves
