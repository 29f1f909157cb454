"""The embedded model really finds a chat too large, and the real loop trims, counts, reports and recovers."""

from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

import msgspec

from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import make_relay, means_of, nowhere, open_configured_store
from sightline.app.machine import SystemClock
from sightline.chat.core.facts import ChatImported, TopicChanged
from sightline.chat.core.pair import MessagePair, text_answer
from sightline.chat.core.topics import ROOT, Parameters, Topic
from sightline.chat.service.chat import ChatContext
from sightline.chat.service.chats import chat_service
from sightline.chat.service.views import Models
from sightline.exchange.engine import Engine
from sightline.exchange.request_counter import RequestCounter
from sightline.filters.expression import EVERYTHING
from sightline.model.exchange import Budgeted
from sightline.settings import ChatSettings
from sightline.store.entries import FactEntry
from tests.chat.service.chat_stage import toolless
from tests.local_model import needs_model

pytestmark = needs_model

MODEL = "smollm2-135m-instruct"
WINDOW, TOLD = 512, 2048
QUESTION = "Tell me one more time about the lighthouse, the keeper and the sea, in as few words as you can. "


def misled(folder: Path) -> Configuration:
    """A configuration whose model has a smaller window than it says."""
    (folder / "sightline.toml").write_text(f"[local]\ncontext_window = {WINDOW}\n")
    loaded = configuration(str(folder / "sightline.toml"))
    models = loaded.catalog.models
    told = msgspec.structs.replace(models[MODEL], context_window=TOLD)
    catalog = msgspec.structs.replace(loaded.catalog, models={**models, MODEL: told})
    return replace(loaded, catalog=catalog)


def pairs(how_many: int) -> tuple[MessagePair, ...]:
    return tuple(
        MessagePair(
            id=f"p{number}",
            user_text=QUESTION,
            model=MODEL,
            at=float(number),
            state="complete",
            answer=text_answer("The keeper lit the lamp and the sea went by. " * 2),
        )
        for number in range(how_many)
    )


def stages(facts: list[FactEntry]) -> list[object]:
    return [noted.fact.telemetry["stage"] for noted in facts if isinstance(noted.fact, Budgeted)]


async def test_a_history_that_was_thought_to_fit_is_trimmed_until_it_does(tmp_path: Path) -> None:
    loaded, clock, ids = misled(tmp_path), SystemClock(), count(1)
    async with AsyncExitStack() as stack:
        store = await open_configured_store(loaded, tmp_path / "data", "", clock)
        stack.push_async_callback(store.close)
        means = means_of(loaded, tmp_path / "data", stack)
        aside, _ = await make_relay(loaded, means, nowhere, stack)
        relay, hub = await make_relay(loaded, means, store.record, stack)
        engine = Engine(relay, aside, RequestCounter(means.memory), means.memory, clock)
        context = ChatContext(
            logbook=store.logbook,
            hub=hub,
            settings=ChatSettings(assistant_response_allowance=64),
            now=clock.now,
            make_id=lambda: f"n{next(ids)}",
        )
        models = Models(loaded.catalog, loaded.has_key, means.memory)
        service = chat_service(context, models, toolless(engine))
        stack.push_async_callback(service.close, 5)
        await service.chat.happen(ChatImported((), pairs(12)))
        await service.chat.happen(TopicChanged(Topic(id=ROOT, parameters=Parameters(max_tokens=12))))
        looking = await service.views.set_view("v", model=MODEL)
        assert looking.view.room.limit == TOLD
        assert looking.counter().text == "12 / 12", "all of it was thought to fit"
        name = await service.sends.send("v", "And now?")
        await service.sends.wait_until_idle()
        pair, told = service.chat.history.get(name), service.sends.telemetry(name)
        assert pair.state == "complete", pair.trouble
        assert pair.assistant_text
        last = told[-1]
        assert [each.stage for each in told] == ["attempt", "overflow_initial", "overflow_retry", "success"]
        assert last.trimmed_count > 1, "the model has said by how much, and one attempt was enough"
        assert last.sent_count == 12 - last.trimmed_count > 0
        assert last.reported_input_tokens is not None
        assert last.reported_input_tokens <= WINDOW
        assert pair.answer.usage.input_tokens == last.reported_input_tokens
        looking = await service.views.get("v")
        assert looking.counter().text == f"[12-{last.trimmed_count}]/13"
        assert "the provider found the request too large" in looking.last.trim_summary
        await store.settle()
        finished, failed = await store.find(EVERYTHING, now=clock.now(), limit=10)
        assert (failed.fault, finished.state) == ("context_overflow", "finished")
        assert stages(await store.facts(failed.id)) == ["attempt", "overflow_initial"]
        assert stages(await store.facts(finished.id)) == ["overflow_retry", "success"]
        name = await service.sends.send("v", "And then?")
        await service.sends.wait_until_idle()
        assert service.chat.history.get(name).state == "complete", "it goes on from there"
