"""Older pairs summed up."""

import asyncio
from pathlib import Path

import pytest

from sightline.errors import Fault
from tests.chat.core.stage import answered
from tests.chat.service.chat_stage import ChatStage, play, refuses, says
from tests.upstream import stall


def test_a_model_drafts_a_person_accepts_and_takes_back(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        await stage.begin(*(answered(name) for name in "abc"))
        compacting = stage.service.compacting
        stage.upstream.script = [says("In ", "short. ")]
        draft = await compacting.draft("v", ["b", "a", "b"])
        assert stage.sent()[:3] == ["a?????????", "!!!!!!!!!!", "b?????????"]
        assert stage.sent()[-1].startswith("Write a summary")
        assert (draft.text, draft.exchange) == ("In short.", "x_1")
        assert (draft.comparison.before.tokens, draft.comparison.after.tokens) == (40, 9)
        assert stage.ids == ["a", "b", "c"], "nothing has changed yet"
        assert (await compacting.compare("v", ["a", "b"], "Shorter.")).after.tokens == 8
        name = await compacting.accept(["a", "b"], "Shorter.")
        assert stage.ids == [name, "c"]
        assert stage.pair(name).user_text == "Shorter."
        await compacting.undo(name)
        assert stage.ids == ["a", "b", "c"]

    play(story, tmp_path)


def test_a_person_can_say_how(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        await stage.begin(answered("a"))
        stage.upstream.script = [says("ok")]
        await stage.service.compacting.draft("v", ["a"], "Only the numbers.")
        assert stage.sent()[-1] == "Only the numbers."

    play(story, tmp_path)


def test_no_summary_is_a_fault(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        await stage.begin(answered("a"))
        draft = stage.service.compacting.draft
        stage.upstream.script = [says(" "), refuses(401, "no", "no")]
        with pytest.raises(Fault, match="has written no summary"):
            await draft("v", ["a"])
        with pytest.raises(Fault, match="no"):
            await draft("v", ["a"])
        with pytest.raises(Fault, match="nothing to sum up"):
            await draft("v", [])
        with pytest.raises(Fault, match="no pair"):
            await draft("v", ["nobody"])

    play(story, tmp_path)


def test_a_draft_that_nobody_waits_for_is_broken_off(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        await stage.begin(answered("a"))
        stage.upstream.script = [stall()]
        drafting = asyncio.ensure_future(stage.service.compacting.draft("v", ["a"]))
        await stage.upstream.arrived(1)
        drafting.cancel()
        await stage.upstream.gone()
        await asyncio.wait({drafting})
        assert stage.relays.kinds()[-1] == "cancelled"

    play(story, tmp_path)
