"""What the next send would be."""

import json
from pathlib import Path

from sightline.chat.facts import TopicAdded
from sightline.chat.topics import Topic
from sightline.model.parts import Image, Inline
from tests.chat.stage import answered
from tests.engine.chatting.chat_stage import ChatStage, play, says

PICTURE = Image(Inline("image/png", "aGk="))


def test_law_6_the_preview_is_the_very_body_of_the_next_send(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        await stage.begin(*(answered(name) for name in "abcd"))
        stage.upstream.script = [says("ok")]
        preview = await stage.service.previews.preview("v", "x" * 35)
        assert preview.prepared is not None
        assert (preview.included, preview.left_out_preflight, preview.trouble) == (3, 1, None)
        assert preview.estimate == stage.engine.estimate(preview.prepared)
        await stage.ask("x" * 35)
        assert stage.upstream.seen[0].body == preview.prepared.body
        assert (await stage.service.sends._views.get("v")).last is not None

    play(story, tmp_path)


def test_what_is_asked_again_or_replaced_is_seen_before(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        await stage.begin(*(answered(name) for name in "abc"))
        previews = stage.service.previews
        for wanted, count in (({}, 7), ({"before": "b"}, 3), ({"replaces": "a"}, 5)):
            prepared = (await previews.preview("v", "why", **wanted)).prepared
            assert prepared is not None
            assert len(json.loads(prepared.body)["messages"]) == count

    play(story, tmp_path)


def test_what_would_not_be_sent_says_why(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        await stage.begin()
        preview = stage.service.previews.preview
        nothing = await preview("v", "  ")
        assert nothing.prepared is None
        assert nothing.trouble is not None
        assert nothing.trouble.message == "there is nothing to send"
        large = await preview("v", "x" * 101)
        assert large.prepared is not None
        assert large.trouble is not None
        assert large.trouble.code == "user_prompt_too_large"
        await stage.happen(TopicAdded(Topic(id="t", name="T", toolsets=("none",))))
        await stage.service.views.put("v", topic="t")
        trouble = (await preview("v", "hello")).trouble
        assert trouble is not None
        assert "no tools none" in trouble.message

    play(story, tmp_path)


def test_a_prompt_is_sized_with_its_band_and_says_whether_it_fits(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        await stage.begin()
        estimate = stage.service.previews.estimate
        sized = await estimate("v", "hello")
        assert (sized.line, sized.limit, sized.fits) == ("5", 100, True)
        assert not (await estimate("v", "x" * 101)).fits
        assert (await estimate("v", "")).estimate.tokens == 0
        stage.service.chat.settings = type(stage.settings)()
        await stage.service.views.put("w", model="large")
        line = (await estimate("w", "some words of a prompt", (PICTURE,))).line
        assert line.startswith("~")
        assert " ± " in line

    play(story, tmp_path)
