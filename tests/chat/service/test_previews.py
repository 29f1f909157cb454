"""What the next send would be."""

import json

from sightline.chat.core.facts import TopicAdded
from sightline.chat.core.sizing import band
from sightline.chat.core.topics import Topic
from sightline.model.parts import Image, Inline
from sightline.model.reply import Usage
from sightline.tokens.estimate import Estimate
from tests.chat.core.stage import answered
from tests.chat.service.chat_stage import ChatStage, played, says
from tests.upstream import streams

COUNTED = 9
SAID = b'data: {"choices":[{"delta":{"content":"a picture"},"finish_reason":"stop"}]}\n\n'
PICTURE = Image(Inline("image/png", "aGk="))


@played()
async def test_law_6_the_preview_is_the_very_body_of_the_next_send(stage: ChatStage) -> None:
    await stage.begin(*(answered(name) for name in "abcd"), script=[says("ok")])
    preview = await stage.service.sends.preview("v", "x" * 35)
    assert (preview.included, preview.left_out_preflight, preview.trouble) == (3, 1, None)
    assert preview.estimate == stage.engine.estimate(preview.prepared)
    await stage.ask("x" * 35)
    assert stage.upstream.seen[0].body == preview.prepared.body
    assert (await stage.service.sends._views.get("v")).last is not None


@played()
async def test_reask_and_replace_can_be_previewed(stage: ChatStage) -> None:
    await stage.begin(*(answered(name) for name in "abc"))
    previews = stage.service.sends
    for wanted, count in (({}, 7), ({"before": "b"}, 3), ({"replaces": "a"}, 5)):
        prepared = (await previews.preview("v", "why", **wanted)).prepared
        assert len(json.loads(prepared.body)["messages"]) == count


@played()
async def test_what_would_not_be_sent_says_why(stage: ChatStage) -> None:
    await stage.begin()
    preview = stage.service.sends.preview
    nothing = await preview("v", "  ")
    assert json.loads(nothing.prepared.body)["messages"] == [{"role": "user", "content": "…"}], "what is there so far"
    assert nothing.trouble.message == "there is nothing to send"
    large = await preview("v", "x" * 101)
    assert large.prepared is not None
    assert large.trouble.code == "user_prompt_too_large"
    await stage.happen(TopicAdded(Topic(id="t", name="T", toolsets=("none",))))
    await stage.service.views.set_view("v", topic="t")
    trouble = (await preview("v", "hello")).trouble
    assert "no tools named none" in trouble.message


@played()
async def test_a_prompt_is_sized_with_its_band_and_says_whether_it_fits(stage: ChatStage) -> None:
    await stage.begin()
    estimate = stage.service.sends.estimate
    sized = await estimate("v", "hello")
    preview = await stage.service.sends.preview("v", "hello")
    assert band(sized) == band(preview.estimate)
    figures = (await stage.service.views.get("v")).view.figures
    assert (sized.prompt + figures.total, sized.limit, sized.fits) == (sized.tokens, 100, True)
    assert not (await estimate("v", "x" * 101)).fits
    assert (await estimate("v", "")).tokens == 0
    stage.service.chat.settings = type(stage.settings)()
    await stage.service.views.set_view("w", model="large")
    line = (await estimate("w", "some words of a prompt", (PICTURE,))).line
    assert line.startswith("~")
    assert " ± " in line


@played()
async def test_the_estimate_at_send_is_the_previews_with_history_and_after_the_provider_counted(
    stage: ChatStage,
) -> None:
    await stage.begin(model="large", script=[says("ok"), says("ok")])
    await stage.ask("some words of a prompt")
    previews = stage.service.sends
    preview = await previews.preview("v", "and more")
    sized = await previews.estimate("v", "and more")
    assert preview.estimate is not None
    assert band(sized) == band(preview.estimate)
    # What the provider counted leads; only the answer and the new question are estimated.
    assert sized.tokens > COUNTED
    assert sized.low >= COUNTED
    assert preview.estimate.how.startswith("counted") or preview.estimate.how == "mixed"
    replaced = await previews.estimate("v", "and more", replaces=stage.ids[0])
    assert band(replaced) == band((await previews.preview("v", "and more", replaces=stage.ids[0])).estimate)


@played()
async def test_one_odd_count_locks_no_model(stage: ChatStage) -> None:
    """A provider that reports 51,890 tokens for a few words with a picture."""

    await stage.begin(model="huge")
    odd = b'data: {"choices":[],"usage":{"prompt_tokens":51890,"completion_tokens":1}}\n\n'
    stage.upstream.script = [streams(SAID, odd, b"data: [DONE]\n\n"), says("ok")]
    first = await stage.ask("what is this", attachments=(PICTURE,))
    assert first.answer.usage.input_tokens == 51_890
    assert (await stage.service.views.get("v")).view.room.learned <= 2
    assert (await stage.service.sends.estimate("v", "and now")).tokens < 5_000
    assert (await stage.ask("and now")).state == "complete"


@played()
async def test_a_lesson_alone_refuses_nothing(stage: ChatStage) -> None:
    await stage.begin(model="large")
    raw = Estimate(100, 80, 150)
    for _ in range(4):  # several times, so that it is believed
        stage.relays.memory.learn("acme", "large", raw, Usage(input_tokens=100_000), tools=False)
    lesson = stage.relays.memory.ratio("acme", "large", tools=False)
    assert lesson.added > 90_000
    stage.upstream.script = [says("ok")]
    assert (await stage.service.sends.estimate("v", "hello")).fits
    assert (await stage.service.sends.preview("v", "hello")).trouble is None
    assert (await stage.ask("hello")).state == "complete"
