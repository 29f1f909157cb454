"""The chat's log: what is in it before it is true, how several processes share it, and what never gets into it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sightline.app.machine import is_alive, process_name
from sightline.chat.core.facts import ChatImported, PairAsked, PairsDeleted, PairsStarred, TopicAdded
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.topics import Topic
from sightline.chat.service.chat import Chat, ChatContext, Preferences, SavedFilter
from sightline.errors import Code, Fault
from sightline.exchange.hub import Hub
from sightline.settings import ChatSettings
from sightline.store.store import Line, Logbook
from tests.chat.core.stage import answered, told
from tests.chat.service.chat_stage import ChatStage, Lines, open_stage, played, refuses, says, says_until
from tests.relay_stage import KEY

ROOT = Path(__file__).parents[3]


def context(logbook: Logbook, hub: Hub | None = None, **more: Any) -> ChatContext:
    return ChatContext(logbook=logbook, hub=hub or Hub(lambda _entries: None), settings=ChatSettings(), **more)


def chat_on(lines: Lines, hub: Hub | None = None) -> Chat:
    ids = iter(range(1000))
    return Chat(context(lines, hub, now=lambda: 5.0, make_id=lambda: f"{id(lines)}-{next(ids)}"))


@played()
async def test_law_9_fact_is_logged_then_applied_then_announced(stage: ChatStage) -> None:
    stage.watch()
    chat, seen = stage.service.chat, []
    await chat.load()
    stage.logbook.before_append = lambda log: seen.append((log, len(chat.history), chat.version))
    chat.listen(lambda _change: seen.append(("true", len(chat.history), chat.version)))
    await chat.happen(PairAsked(answered("a")))
    assert seen == [("chat", 0, 0), ("true", 1, 1)]
    assert await stage.news("changed") == {"kind": "changed", "version": 1, "ids": ["a"], "wide": False}


@played()
async def test_what_cannot_be_leaves_no_trace(stage: ChatStage) -> None:
    with pytest.raises(Fault, match="no pair"):
        await stage.service.chat.happen(PairsDeleted(("nobody",)))
    with pytest.raises(Fault, match="not Unicode"):
        await stage.service.chat.happen(PairAsked(MessagePair(id="a", user_text="half \ud83d")))
    assert stage.logbook.kept == {}
    assert stage.service.chat.version == 0


async def test_a_caller_that_goes_away_takes_nothing_with_it() -> None:
    lines = Lines()
    chat = chat_on(lines)
    await chat.load()
    asking = asyncio.ensure_future(chat.happen(PairAsked(answered("a"))))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait({asking})
    await chat.close()
    assert lines.kinds() == ["asked"]
    assert (chat.version, chat.history.sending) == (1, "a")


async def test_what_another_process_has_made_impossible_is_refused() -> None:
    lines = Lines()
    one, two = chat_on(lines), chat_on(lines)
    for fact in told([answered("a")]):
        await one.happen(fact)
    await two.load()
    await two.happen(PairsDeleted(("a",)))
    with pytest.raises(Fault, match="not there any more"):
        await one.happen(PairsDeleted(("a",)))
    assert lines.kinds() == ["asked", "answered", "deleted"]


async def test_watchers_are_notified_of_changes_by_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.chat.service.chat._LOOK", 0.0)
    async with open_stage(tmp_path) as stage:
        stage.watch()
        await stage.begin(answered("a"))
        other = chat_on(stage.logbook)
        await other.load()
        await other.happen(TopicAdded(Topic(id="t", name="T")))
        await stage.news("topics")
        assert "t" in stage.service.chat.history.topics
        assert stage.service.chat.version == 3


@played()
async def test_a_send_of_another_process_is_left_alone_as_long_as_it_lives(stage: ChatStage) -> None:
    gate = asyncio.Event()
    await stage.begin(script=[says_until(gate, "slowly")])
    name = await stage.service.sends.send("v", "hello")
    other = stage.another()
    history = await other.chat.load()
    assert history.sending == name
    await other.views.set_view("w", model="m")
    with pytest.raises(Fault, match="still arriving"):
        await other.sends.send("w", "me too")
    with pytest.raises(Fault, match="still arriving") as late:  # who was asked before the other had begun
        await other.chat.happen(PairAsked(MessagePair(id="late", user_text="me too", state="sending")))
    assert (late.value.status, late.value.details) == (409, {"code": "already_sending"})
    with pytest.raises(Fault, match="another process sends it"):
        await failing_with_hint(other.sends.cancel())
    gate.set()
    await stage.service.sends.wait_until_idle()
    await other.chat.load()
    assert history.get(name).state == "complete"
    assert list(stage.logbook.kept) == ["chat"], "no sign of life stays behind"
    await other.close(1)


async def failing_with_hint(awaited):
    try:
        await awaited
    except Fault as fault:
        raise Fault(fault.code, f"{fault.message}: {fault.hint}") from None


@played(settings=ChatSettings())
async def test_nothing_secret_is_in_the_log(stage: ChatStage) -> None:
    await stage.begin(model="large", script=[says(f"your key is {KEY}."), refuses(401, "no", f"wrong key {KEY}")])
    pair = await stage.ask(f"my key is {KEY}")
    assert KEY not in pair.user_text + pair.assistant_text, "here it is as in the log"
    assert pair.user_text.startswith("my key is ")
    await stage.ask("again")
    await stage.service.chat.prefer(Preferences(saved_filters=(SavedFilter("f", KEY),)))
    assert KEY.encode() not in stage.logbook.bytes
    told = json.dumps([str(fact) for fact in stage.relays.facts() if "Budgeted" in type(fact).__name__])
    assert KEY not in told


@played()
async def test_preferences_go_over_the_configuration_and_the_last_ones_count(stage: ChatStage) -> None:
    stage.watch()
    chat = stage.service.chat
    await chat.load()
    other = stage.another().chat
    await other.prefer(Preferences({"maxTrimAttempts": 3}))
    saved = (SavedFilter("mine", "s>1"),)
    await chat.prefer(Preferences({"userRequestAllowance": 7, "styleDirectives": ["Short."]}, saved))
    await other.load()
    for each in (chat, other):
        assert each.settings.user_request_allowance == 7
        assert each.settings.style_directives == ("Short.",)
        assert each.settings.max_trim_attempts == 10, "what was not set is as it is configured"
        assert each.settings.chars_per_token == 1, "also where that is not the default"
        assert each.preferences.saved_filters == saved
    await stage.news("preferences")


async def test_a_fact_that_cannot_be_here_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    lines = Lines()
    await lines.append("chat", 0, [b'{"kind": "deleted", "ids": ["a"]}'], 1.0)
    chat = chat_on(lines)
    await chat.load()
    assert chat.version == 1
    await chat.happen(PairAsked(answered("a")))
    assert "a fact of the chat from 1 changes nothing" in caplog.text


async def test_a_large_import_is_one_change_of_many_lines() -> None:
    lines, seen = Lines(), list[int]()
    chat = chat_on(lines)
    chat.listen(lambda _change: seen.append(len(chat.history)))
    pairs = tuple(MessagePair(id=f"p{n}", topic="t", at=float(n)) for n in range(2500))
    await chat.happen(ChatImported((Topic(id="t", name="T"),), pairs))
    assert (chat.version, len(lines.kept["chat"]), seen[-1], len(chat.history)) == (3, 3, 2500, 2500)
    again = chat_on(lines)
    assert list(await again.load()) == list(chat.history)


async def test_history_is_preloaded_before_first_use() -> None:
    lines = Lines()
    pairs = tuple(MessagePair(id=f"p{n}", user_text=f"Word {n}", at=float(n)) for n in range(2500))
    await chat_on(lines).happen(ChatImported((), pairs))
    chat = chat_on(lines)
    chat.warm()
    assert chat._warming is not None
    await chat._warming
    assert (chat.version, len(chat.history), len(chat.history.words._known)) == (3, 2500, 2500)
    await chat.close()


async def test_unreadable_history_is_logged_and_raised_on_load(caplog: pytest.LogCaptureFixture) -> None:
    lines = Lines()
    await lines.append("chat", 0, [b"{"], 1.0)
    chat = chat_on(lines)
    chat.warm()
    assert chat._warming is not None
    await chat._warming
    assert "the chat could not be read" in caplog.text
    with pytest.raises(Fault, match="line 1 of the log 'chat'"):
        await chat.load()
    await chat.close()


SENDING = """
import asyncio, sys
from pathlib import Path
from sightline.settings import ChatSettings
from sightline.store.sqlite import open_store
from tests.chat.service.chat_stage import ChatStage, says_until
from tests.store.traffic import prices
from tests.upstream import Upstream
import time

async def main(folder):
    store = await open_store(Path(folder), prices=prices, now=time.time)
    async with Upstream() as upstream:
        stage = ChatStage(upstream, Path(folder))
        stage.logbook = store.logbook
        stage.service = stage.another("")
        stage.watch()
        await stage.begin()
        upstream.script = [says_until(asyncio.Event(), "half an ans")]
        name = await stage.service.sends.send("v", "are you there?")
        await stage.news("delta")
        print(name, flush=True)
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_killed_while_sending_the_pair_is_an_error_after_the_restart(tmp_path: Path) -> None:
    from sightline.store.sqlite import open_store
    from tests.store.traffic import NOON, prices

    command = [sys.executable, "-c", SENDING, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:  # noqa: ASYNC220
        name = child.stdout.readline().strip()
        assert name
        os.kill(child.pid, signal.SIGKILL)
    store = await open_store(tmp_path, prices=prices, now=lambda: NOON)
    try:
        now, make_id = (lambda: NOON), (lambda: "another")
        chat = Chat(context(store.logbook, now=now, make_id=make_id, process=process_name(), is_alive=is_alive))
        history = await chat.load()
        pair = history.get(name)
        assert (pair.state, pair.user_text) == ("error", "are you there?")
        assert pair.trouble.code == "interrupted"
        assert history.sending == ""
        assert [log.name for log in await store.logbook.logs()] == ["chat"]
    finally:
        await store.close()


async def test_of_two_that_find_a_dead_send_one_ends_it() -> None:
    lines = Lines()
    await chat_on(lines).happen(PairAsked(answered("a")))
    one, two = chat_on(lines), chat_on(lines)
    ended = b'{"kind":"failed","id":"a","trouble":{"code":"interrupted","message":"m"}}'

    def first(_log: str) -> None:
        lines.before_append = lambda _log: None
        lines.kept["chat"].append(Line(2, 1.0, ended))

    lines.before_append = first
    await one.load()
    await two.load()
    assert lines.kinds() == ["asked", "failed"]
    assert one.history.get("a").state == two.history.get("a").state == "error"


async def test_a_log_that_cannot_be_read_for_a_while_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sightline.chat.service.chat._LOOK", 0.0)
    async with open_stage(tmp_path) as stage:
        stage.watch()
        await stage.begin()
        read, has_failed = stage.logbook.lines, asyncio.Event()

        async def fail(log: str, after: int = 0) -> list[Line]:
            has_failed.set()
            raise Fault(Code.CONFIG, "the database is away")

        stage.logbook.lines = fail
        await has_failed.wait()
        stage.logbook.lines = read
        await chat_on(stage.logbook).happen(TopicAdded(Topic(id="t", name="T")))
        await stage.news("topics")
        assert "the database is away" in caplog.text


@played()
async def test_change_of_very_many_pairs_is_announced_without_their_ids(stage: ChatStage) -> None:
    names = tuple(f"p{number}" for number in range(1001))
    await stage.begin()
    await stage.happen(ChatImported((), tuple(map(answered, names))))
    stage.watch()
    change = await stage.service.chat.happen(PairsStarred(names, 1))
    assert len(change.ids) == 1001
    assert await stage.news("changed") == {"kind": "changed", "version": 3, "ids": [], "wide": True}
    looking = await stage.service.views.set_view("v", filter="s1")
    assert len(looking.view.visible) == 1001
