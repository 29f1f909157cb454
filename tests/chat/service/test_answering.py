"""One request for one answer."""

from pathlib import Path

import pytest

from sightline.chat.service.answerer import AnswerRequest, DirectAnswerer, RunToResume
from sightline.errors import Fault
from sightline.model.events import StreamEvent
from sightline.store.entries import FactEntry
from tests.chat.service.chat_stage import ChatStage, play, says


def test_an_answer_is_one_request_with_the_label_of_the_chat(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        await stage.begin()
        stage.upstream.script = [says("ok")]
        prepared = (await stage.service.previews.preview("v", "hello")).prepared
        assert prepared is not None
        heard, noted = list[StreamEvent](), list[FactEntry]()
        wanted = AnswerRequest("p", prepared, budgeted=({"stage": "attempt"},))
        given = await DirectAnswerer(stage.engine).answer(wanted, heard.append, noted.append)
        assert (given.rounds, given.run, given.reply.choice.finish) == ((), "", "stop")
        assert stage.relays.kinds() == ["received", "budgeted", "attempt", "finished"]
        assert len(noted) == 4
        assert heard

    play(story, tmp_path)


def test_there_are_no_tools_without_a_runner(tmp_path: Path) -> None:
    async def story(stage: ChatStage) -> None:
        with pytest.raises(Fault, match="no tools hands, feet here"):
            await DirectAnswerer(stage.engine).tools(("hands", "feet"))
        with pytest.raises(Fault, match="the run r_1 needs tools"):
            await DirectAnswerer(stage.engine).take_up(
                RunToResume("r_1", lambda: None, lambda _messages: None), _heard, _noted
            )
        assert await DirectAnswerer(stage.engine).result_of_run("r_1") is None

    play(story, tmp_path)


def _heard(_event: StreamEvent) -> None:
    raise AssertionError


def _noted(_noted: FactEntry) -> None:
    raise AssertionError
