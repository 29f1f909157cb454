"""Several chats of one store: the list, search, names, forks, deletion, and two sends at once."""

import asyncio
from itertools import count

import pytest

from sightline.chat.core.facts import PairsDeleted, TopicAdded, TopicChanged
from sightline.chat.core.topics import ROOT, Topic
from sightline.chat.service.chat import MAIN, ChatContext
from sightline.chat.service.chats import MOST_OPEN, Chats
from sightline.errors import Fault
from tests.chat.core.stage import answered, told
from tests.chat.service.chat_stage import ChatStage, played, says, says_until


def chats_of(stage: ChatStage) -> Chats:
    numbers = count(1)
    context = ChatContext(
        logbook=stage.logbook,
        hub=stage.hub,
        settings=stage.settings,
        now=stage.clock.now,
        make_id=lambda: f"c_{next(numbers)}",
        secrets=("sk-secret-key-1234567890",),
    )
    return Chats(context, lambda name: stage.service if name == MAIN else stage.another("here", name))


async def titles(chats: Chats, words: str = "") -> list[str]:
    return [brief.title for brief in await chats.list_chats(words)]


@played()
async def test_an_old_store_has_its_chat_as_the_only_one_in_the_list(stage: ChatStage) -> None:
    await stage.begin(answered("a"), answered("b"))
    (brief,) = await chats_of(stage).list_chats()
    assert (brief.id, brief.name, brief.title, brief.pairs, brief.session) == (MAIN, "", "Main chat", 2, "chat")


@played()
async def test_each_chat_has_its_own_history_and_two_send_at_once(stage: ChatStage) -> None:
    chats, gate = chats_of(stage), asyncio.Event()
    stage.watch()
    await stage.begin(script=[says_until(gate, "slow ", then=["main"]), says("quick")])
    other = await chats.get(await chats.create("Other"))
    await other.views.set_view("v", model="m")
    waiting = await stage.service.sends.send("v", "first")
    await stage.news("delta")  # the first one has the answer that waits
    asked = await other.sends.send("v", "second")
    await other.sends.wait_until_idle()
    assert other.chat.history.get(asked).assistant_text == "quick"
    assert stage.pair(waiting).state == "sending", "and its own answer still arrives"
    gate.set()
    assert (await stage.ended(waiting)).assistant_text == "slow main"
    assert [len(stage.service.chat.history), len(other.chat.history)] == [1, 1]
    sessions = {fact.session for number in (1, 2) for fact in stage.relays.facts(f"x_{number}")[:1]}
    assert sessions == {"chat", "chat-c_1"}
    await chats.close(5)


@played()
async def test_a_chat_without_a_name_is_called_after_its_first_question(stage: ChatStage) -> None:
    chats = chats_of(stage)
    name = await chats.create()
    assert await titles(chats) == ["New chat", "Main chat"]
    service = await chats.get(name)
    for fact in told([answered("a")]):
        await service.chat.happen(fact)
    assert "a?????????" in await titles(chats)
    await chats.rename(name, "  Fish\n and  chips ")
    assert "Fish and chips" in await titles(chats)
    await chats.rename(name, "")
    assert "a?????????" in await titles(chats)
    await chats.rename(name, "with sk-secret-key-1234567890 in it")
    assert b"sk-secret-key" not in stage.logbook.bytes


@pytest.mark.parametrize("name", ["x" * 201, "bell\a"])
@played()
async def test_a_name_that_no_chat_can_have_is_refused(stage: ChatStage, name: str) -> None:
    chats = chats_of(stage)
    with pytest.raises(Fault, match="no chat can have this name"):
        await chats.create(name)
    assert await titles(chats) == ["Main chat"]


@played()
async def test_search_finds_words_of_names_questions_and_answers_in_chats_that_are_not_open(stage: ChatStage) -> None:
    await stage.begin(answered("a"), answered("b"))
    chats = chats_of(stage)
    await chats.fork(MAIN, "a", "Holiday plans")
    again = chats_of(stage)  # as after a restart: nothing but the main chat is open
    assert await titles(again, "HOLIDAY  plans") == ["Holiday plans"]
    found = {brief.title: (brief.found, brief.found_in) for brief in await again.list_chats("!!!")}
    assert found == {"Holiday plans": ("a????????? !!!!!!!!!!", "a"), "Main chat": ("b????????? !!!!!!!!!!", "b")}
    assert await titles(again, "b???") == ["Main chat"]
    assert await titles(again, "nothing has this") == []


@played()
async def test_a_fork_has_the_pairs_up_to_one_and_the_topics_and_goes_its_own_way(stage: ChatStage) -> None:
    await stage.begin(*(answered(name) for name in "abcd"))
    await stage.happen(
        TopicChanged(Topic(id=ROOT, instructions="Be brief.")),
        TopicAdded(Topic(id="t", name="Fish")),
        PairsDeleted(("b",)),
    )
    chats = chats_of(stage)
    fork = await chats.get(await chats.fork(MAIN, "c"))
    history = await fork.chat.load()
    assert [pair.id for pair in history] == ["a", "c"]
    assert history.topics.get("t").name == "Fish"
    assert history.topics.settings_for("t").instructions == "Be brief."
    assert "Main chat (fork)" in await titles(chats)
    await fork.chat.happen(PairsDeleted(("a",)))
    assert stage.ids == ["a", "c", "d"]


@played()
async def test_a_fork_has_topics_that_were_moved_below_newer_ones(stage: ChatStage) -> None:
    await stage.begin(answered("a"))
    await stage.happen(
        TopicAdded(Topic(id="fish", name="Fish")),
        TopicAdded(Topic(id="animals", name="Animals")),
        TopicChanged(Topic(id="fish", name="Fish", parent="animals")),
    )
    chats = chats_of(stage)
    history = await (await chats.get(await chats.fork(MAIN, "a"))).chat.load()
    assert history.topics.path("fish") == ("Animals", "Fish")


@pytest.mark.parametrize("pair", ["b", "nobody"])
@played()
async def test_there_is_no_fork_from_a_pair_that_is_not_there(stage: ChatStage, pair: str) -> None:
    await stage.begin(answered("a"), answered("b"))
    await stage.happen(PairsDeleted(("b",)))
    chats = chats_of(stage)
    with pytest.raises(Fault, match="there is no pair"):
        await chats.fork(MAIN, pair)
    assert await titles(chats) == ["Main chat"]


@played()
async def test_a_fork_that_cannot_be_written_leaves_nothing(stage: ChatStage) -> None:
    await stage.begin(answered("a"))
    chats = chats_of(stage)

    def fail(log: str) -> None:
        if log == "chat:c_1":
            raise OSError("disk full")

    stage.logbook.before_append = fail
    with pytest.raises(OSError, match="disk full"):
        await chats.fork(MAIN, "a")
    assert await titles(chats) == ["Main chat"]
    assert not any("c_1" in log for log, lines in stage.logbook.kept.items() if lines)


@played()
async def test_a_new_chat_has_the_settings_for_all_topics_of_the_main_chat(stage: ChatStage) -> None:
    await stage.begin()
    await stage.happen(TopicChanged(Topic(id=ROOT, instructions="Be brief.")))
    chats = chats_of(stage)
    history = await (await chats.get(await chats.create("x"))).chat.load()
    assert (len(history), history.topics.get(ROOT).instructions) == (0, "Be brief.")


@played()
async def test_a_deleted_chat_is_gone_and_the_main_chat_is_empty_after_it(stage: ChatStage) -> None:
    await stage.begin(answered("a"), answered("b"))
    chats = chats_of(stage)
    fork = await chats.fork(MAIN, "a", "Holiday")
    await chats.delete(fork)
    assert await titles(chats) == ["Main chat"]
    assert b"Holiday" not in stage.logbook.bytes
    for call in (chats.get, chats.describe, chats.delete):
        with pytest.raises(Fault, match="there is no chat 'c_1'"):
            await call(fork)
    assert not await chats.resume_run(fork, "a", "run_1")
    stage.service = stage.another("here")  # what the list opens next
    await chats.delete(MAIN)
    assert [(brief.id, brief.pairs) for brief in await chats.list_chats()] == [(MAIN, 0)]
    assert b"a????" not in stage.logbook.bytes


@played()
async def test_a_chat_that_another_process_deleted_is_closed_here(stage: ChatStage) -> None:
    await stage.begin(answered("a"), answered("b"))
    here, elsewhere = chats_of(stage), chats_of(stage)
    fork = await here.fork(MAIN, "a")
    opened = await here.get(fork)
    await elsewhere.delete(fork)
    with pytest.raises(Fault, match="deleted elsewhere"):
        await opened.chat.happen(PairsDeleted(("a",)))
    with pytest.raises(Fault, match="there is no chat 'c_1'") as caught:
        await here.get(fork)
    assert caught.value.status == 404
    assert (await here.get(MAIN)).chat.version
    stage.service = stage.another()
    await elsewhere.delete(MAIN)
    stage.service = stage.another("here")  # what is opened next
    assert len(await (await here.get(MAIN)).chat.load()) == 0


@played()
async def test_a_chat_that_waits_for_an_answer_is_not_deleted(stage: ChatStage) -> None:
    gate = asyncio.Event()
    chats = chats_of(stage)
    await stage.begin(script=[says_until(gate, "so ", then=["far"])])
    await stage.service.sends.send("v", "hello")
    with pytest.raises(Fault, match="still arriving") as caught:
        await chats.delete(MAIN)
    assert caught.value.status == 409
    gate.set()
    await stage.service.sends.wait_until_idle()
    assert (await chats.describe(MAIN)).pairs == 1


@played()
async def test_chats_that_are_left_alone_are_closed_and_open_again(stage: ChatStage) -> None:
    chats = chats_of(stage)
    first = await chats.create("first")
    before = await chats.get(first)
    for number in range(MOST_OPEN + 1):
        await chats.get(await chats.create(str(number)))
    after = await chats.get(first)
    assert after is not before
    assert (await chats.describe(first)).name == "first"
    await chats.close(0)


@played()
async def test_what_was_said_for_a_forgotten_exchange_is_gone_from_every_chat_that_has_it(stage: ChatStage) -> None:
    chats = chats_of(stage)
    await stage.begin(script=[says("a planted answer"), says("kept")])
    first = await stage.service.sends.send("v", "a planted question")
    await stage.service.sends.wait_until_idle()
    second = await stage.service.sends.send("v", "another")
    await stage.service.sends.wait_until_idle()
    fork = await chats.fork(MAIN, second, "Fork")
    await chats.erase([stage.pair(first).exchange])
    for log in await stage.logbook.logs("chat"):
        assert all(b"planted" not in line.data for line in await stage.logbook.lines(log.name)), log.name
    history = await (await chats.get(fork)).chat.load()
    assert [pair.user_text for pair in history] == ["[deleted]", "another"]
    assert history.get(second).assistant_text == "kept"
    await chats.erase(["x_nowhere"])
    await chats.close(5)
