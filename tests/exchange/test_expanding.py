import json
from pathlib import Path
from typing import Any

import pytest

from sightline.errors import Fault
from sightline.exchange.interception.holds import expand
from sightline.exchange.interception.viewer import Viewer
from sightline.model.exchange import Edited
from sightline.store.store import Store
from tests.exchange.test_viewing import recorded
from tests.holding import JSON, asking, held, let_go
from tests.relay_stage import Stage, asks
from tests.reply_samples import CALLS, whole
from tests.upstream import answer


def reply(name: str, text: str) -> bytes:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": f"m_{name}", "role": "assistant", "status": "completed", "content": content}
    told = {"id": name, "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [message]}
    return json.dumps(told).encode()


def responses(words: str, before: str = "") -> Any:
    body = {"model": "m", "input": words} | ({"previous_response_id": before} if before else {})
    return asks("openai-responses", body=json.dumps(body).encode(), session="s")


def test_a_chain_of_responses_becomes_one_request(tmp_path: Path) -> None:
    async def story(stage: Stage, viewing: Viewer, _store: Store) -> None:
        stage.upstream.script = [answer(200, reply(f"r{n}", f"said {n}"), JSON) for n in (1, 2, 3)]
        await stage.ask(responses("one"))
        await stage.ask(responses("two", "r1"))
        holds = stage.relay.holds
        holds.set_mode("every")
        async with asking(stage, responses("three", "r2")):
            hold = await held(stage)
            assert await expand(holds, viewing.records, hold.exchange) is hold
            texts = [section.text for section in viewing.now(hold).sections[:5]]
            assert texts == ["one", "said 1", "two", "said 2", "three"]
            let_go(stage, hold)
        assert "previous_response_id" not in json.loads(stage.upstream.seen[-1].body)
        facts = [noted.fact for noted in await viewing.records.facts("x_3")]
        assert [fact.operation for fact in facts if isinstance(fact, Edited)] == ["expand"]
        async with asking(stage, responses("four", "r3")):
            hold = await held(stage)
            await expand(holds, viewing.records, hold.exchange)
            assert len(viewing.now(hold).sections) > 6, "what was written out before is not looked up again"
            let_go(stage, hold)

    recorded(tmp_path, story, spoken="openai-responses")


def test_a_link_that_is_not_on_record_is_named(tmp_path: Path) -> None:
    async def story(stage: Stage, viewing: Viewer, _store: Store) -> None:
        holds = stage.relay.holds
        holds.set_mode("every")
        async with asking(stage, responses("two", "r_lost")):
            hold = await held(stage)
            with pytest.raises(Fault, match="r_lost") as caught:
                await expand(holds, viewing.records, hold.exchange)
            assert caught.value.status == 422
            assert not hold.draft.is_dirty
            let_go(stage, hold)

    recorded(tmp_path, story, spoken="openai-responses")


def test_calls_of_a_reply_cannot_be_written_out(tmp_path: Path) -> None:
    async def story(stage: Stage, viewing: Viewer, _store: Store) -> None:
        holds = stage.relay.holds
        holds.set_rules([{"filter": "", "phase": "tool_calls"}])
        stage.upstream.script = [answer(200, whole("openai-responses", CALLS), JSON)]
        async with asking(stage, responses("one")):
            hold = await held(stage)
            with pytest.raises(Fault) as caught:
                await expand(holds, viewing.records, hold.exchange)
            assert caught.value.status == 422
            let_go(stage, hold)
        with pytest.raises(Fault) as caught:
            await expand(holds, viewing.records, hold.exchange)
        assert caught.value.status == 409

    recorded(tmp_path, story, spoken="openai-responses")
