"""The parts of the chat together, and compaction."""

import asyncio

import pytest

from sightline.errors import Fault
from tests.chat.core.stage import answered
from tests.chat.service.chat_stage import ChatStage, played, refuses, says, says_until
from tests.upstream import stall


@played()
async def test_closed_it_lets_an_answer_come_to_its_end(stage: ChatStage) -> None:
    gate = asyncio.Event()
    stage.watch()
    await stage.begin(script=[says_until(gate, "so ", then=["far"])])
    name = await stage.service.sends.send("v", "hello")
    await stage.news("delta")
    closing = asyncio.ensure_future(stage.service.close(30))
    gate.set()
    await closing
    assert (stage.pair(name).state, stage.pair(name).assistant_text) == ("complete", "so far")


@played()
async def test_a_model_drafts_a_summary_and_nothing_changes_yet(stage: ChatStage) -> None:
    await stage.begin(*(answered(name) for name in "abc"))
    stage.upstream.script = [says("In ", "short. ")]
    draft = await stage.service.draft_summary("v", ["b", "a", "b"])
    assert stage.sent()[:3] == ["a?????????", "!!!!!!!!!!", "b?????????"]
    assert stage.sent()[-1].startswith("Write a summary")
    assert (draft.text, draft.exchange) == ("In short.", "x_1")
    assert (draft.before.tokens, draft.after.tokens) == (40, 9)
    assert stage.ids == ["a", "b", "c"]


@played()
async def test_no_summary_is_a_fault(stage: ChatStage) -> None:
    await stage.begin(answered("a"))
    draft = stage.service.draft_summary
    stage.upstream.script = [says(" "), refuses(401, "no", "no")]
    with pytest.raises(Fault, match="has written no summary"):
        await draft("v", ["a"])
    with pytest.raises(Fault, match="no"):
        await draft("v", ["a"])
    with pytest.raises(Fault, match="nothing to summarize"):
        await draft("v", [])
    with pytest.raises(Fault, match="no pair"):
        await draft("v", ["nobody"])


@played()
async def test_abandoned_draft_is_cancelled(stage: ChatStage) -> None:
    await stage.begin(answered("a"), script=[stall()])
    drafting = asyncio.ensure_future(stage.service.draft_summary("v", ["a"]))
    await stage.upstream.arrived(1)
    drafting.cancel()
    await stage.upstream.gone()
    await asyncio.wait({drafting})
    assert stage.relays.kinds()[-1] == "cancelled"
