"""Views of the chat, their rows, and the models that they count for."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.chat.core.facts import (
    ChatImported,
    PairAsked,
    PairsHandled,
    PairsStarred,
    TopicAdded,
    TopicChanged,
    TopicRemoved,
)
from sightline.chat.core.topics import Topic
from sightline.chat.service import views as module
from sightline.chat.service.answerer import AnswerRequest, AnswerResult
from sightline.chat.service.chat import Preferences
from sightline.chat.service.views import Models, Rows
from sightline.errors import Code, Fault
from sightline.exchange.engine import Engine, EventObserver
from sightline.exchange.memory import Memory
from sightline.exchange.recorder import FactObserver
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.model.reply import Usage
from sightline.model.request import FunctionTool, Tool
from sightline.settings import ChatSettings
from sightline.tokens.estimate import between
from tests.chat.core.stage import NOW, answered, history_of, ids, told, view_of
from tests.chat.service.chat_stage import ChatStage, open_stage, played, says


@played()
async def test_a_view_is_a_filter_a_model_and_a_topic_each_changed_alone(stage: ChatStage) -> None:
    await stage.happen(TopicAdded(Topic(id="t", name="T", system_prompt="Be brief.")))
    await stage.begin(answered("a"), answered("b", star=2))
    views = stage.service.views
    looking = await views.set_view("v", filter="s>1")
    assert ids(looking.view.visible) == "b"
    looking = await views.set_view("v", topic="t")
    assert (looking.filter, ids(looking.view.visible), looking.view.prelude) == ("s>1", "b", "Be brief.")
    looking = await views.set_view("v", model="large")
    assert (looking.view.model, looking.view.room.limit, looking.view.topic) == ("large", 1000, "t")
    looking = await views.set_view("v", filter="@mine", expression=parse("s<1", scope=FilterScope.CHAT))
    assert (looking.filter, ids(looking.view.visible)) == ("@mine", "a")
    assert (await views.set_view("new")).counter().text == "2 / 2"


@played()
async def test_what_is_wrong_changes_nothing(stage: ChatStage) -> None:
    await stage.begin(answered("a"), filter_text="s0")
    for wrong in ({"filter": "s>>"}, {"model": "nonsense"}, {"topic": "nowhere"}):
        with pytest.raises(Fault):
            await stage.service.views.set_view("v", **{"filter": "s1", "model": "large", "topic": "", **wrong})
    looking = await stage.service.views.get("v")
    assert (looking.filter, looking.model) == ("s0", "m")
    with pytest.raises(Fault, match="too long"):
        await stage.service.views.set_view("v" * 1000)


@played()
async def test_1_the_model_at_hand_is_the_selected_one_else_the_topics_the_newest_pairs_or_the_default(
    stage: ChatStage,
) -> None:
    views = stage.service.views
    await stage.happen(TopicAdded(Topic(id="t", name="T", model="large")))
    assert (await views.set_view("v")).view.model == "acme/m", "the default"
    await stage.happen(*told([answered("a", model="large")]))
    assert (await views.get("v")).view.model == "large"
    await stage.happen(*told([answered("b", model="gone")]))
    assert (await views.get("v")).view.model == "acme/m", "that of the newest pair is no longer known"
    assert (await views.set_view("v", topic="t")).view.model == "large"
    assert (await views.set_view("v", model="m")).view.model == "m"
    assert (await views.set_view("v", model="")).view.model == "large"


@played()
async def test_view_updates_incrementally_on_each_change(stage: ChatStage) -> None:
    many = tuple(answered(f"p{number}", at=NOW + number) for number in range(1000))
    await stage.happen(ChatImported((), many))
    await stage.begin(filter_text="s0")
    looking = await stage.service.views.get("v")
    assert (len(looking.view.visible), looking.view.selections) == (1000, 1)
    stage.upstream.script = [says("ok")]
    pair = await stage.ask()
    await stage.happen(PairsStarred(("p999",), 1))
    looking = await stage.service.views.get("v")
    assert looking.view.visible[-1].id == pair.id
    assert looking.view.selections == 1, "a question, its answer and a star are no reason to go through all"
    assert looking.view.standing("p999") == "hidden"


@played()
async def test_what_is_learned_of_a_model_moves_the_boundary(stage: ChatStage) -> None:
    await stage.begin(answered("a"))
    looking = await stage.service.views.get("v")
    sizer = looking.view.sizer
    stage.upstream.script = [says("ok")]
    await stage.ask()
    assert (await stage.service.views.get("v")).view.sizer is not sizer
    assert (await stage.service.views.get("v")).view.sizer is looking.view.sizer


@played()
async def test_settings_are_for_all_views(stage: ChatStage) -> None:
    await stage.begin(*(answered(name) for name in "abcd"))
    looking = await stage.service.views.get("v")
    assert len(looking.view.included) == 4
    await stage.service.chat.prefer(Preferences({"userRequestAllowance": 50}))
    assert len(looking.view.included) == 2
    assert looking.view.room.user == 50


async def test_least_recently_used_view_is_evicted_and_reported_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_VIEWS", 2)
    async with open_stage(tmp_path) as stage:
        views = stage.service.views
        for name in ("a", "b"):
            await views.set_view(name, model="m")
        await views.get("a")
        await views.set_view("c", model="m")
        with pytest.raises(Fault, match="is not there any more") as caught:
            await views.get("b")
        assert caught.value.status == 404
        await views.get("a")


@played()
async def test_a_topic_that_goes_takes_no_view_with_it(stage: ChatStage) -> None:
    await stage.happen(TopicAdded(Topic(id="t", name="T")))
    await stage.begin(answered("a"))
    await stage.service.views.set_view("v", topic="t")
    await stage.happen(TopicRemoved("t"))
    assert (await stage.service.views.get("v")).view.topic == ""


@dataclass
class Handy:
    """Has one toolset, `hands`."""

    engine: Engine

    async def tools(self, toolsets: tuple[str, ...]) -> tuple[Tool, ...]:
        if toolsets != ("hands",):
            raise Fault(Code.CONFIG, "there is no such toolset")
        return (FunctionTool("grab"),)

    async def answer(self, wanted: AnswerRequest, heard: EventObserver, noted: FactObserver) -> AnswerResult:
        raise AssertionError


@played(answering=Handy)
async def test_the_topics_tools_take_room_and_one_that_cannot_be_had_keeps_from_sending(stage: ChatStage) -> None:
    await stage.happen(TopicAdded(Topic(id="t", name="T", toolsets=("hands",))))
    await stage.begin(model="large")
    looking = await stage.service.views.set_view("v", topic="t")
    assert looking.view.room.tools > 0
    assert looking.trouble is None
    await stage.happen(TopicChanged(Topic(id="t", name="T", toolsets=("feet",))))
    looking = await stage.service.views.get("v")
    assert looking.trouble is not None
    assert looking.view.room.tools == 0
    with pytest.raises(Fault, match="no such toolset"):
        await stage.service.sends.send("v", "hello")


@played()
async def test_a_pair_on_its_way_is_seen_by_all(stage: ChatStage) -> None:
    await stage.begin()
    other = await stage.service.views.set_view("w", model="m")
    await stage.happen(PairAsked(answered("a")))
    assert ids(other.view.visible) == "a"
    assert asyncio.current_task() is not None


def models_of(folder: Path, preferred: str = "") -> Models:
    providers = {"acme": Provider(base_url="http://127.0.0.1:9", key_env="ACME_KEY", default_model="m")}
    facts = {name: Model(providers=("acme",), context_window=1000, tpm=500) for name in ("m", "n")}
    return Models(Catalog(providers=providers, models=facts), lambda _: True, Memory(folder, lambda: 1.0), preferred)


def test_model_name_resolves_to_a_provider_or_is_unknown(tmp_path: Path) -> None:
    models = models_of(tmp_path)
    assert models.resolve("m").provider_name == "acme"
    with pytest.raises(Fault, match="no provider is known"):
        models.resolve("nonsense")
    assert models.default == "acme/m"
    assert models_of(tmp_path, "n").default == "n"


def test_ml_is_the_window_or_the_tokens_of_a_minute_also_as_the_provider_tells_them(tmp_path: Path) -> None:
    models = models_of(tmp_path)
    assert models.limit(models.resolve("m")) == 500
    models.memory.ledger.observe_headers("acme", "m", {"x-ratelimit-limit-tokens": "200"}, 1.0)
    assert models.limit(models.resolve("m")) == 200


def test_what_was_counted_is_counted_once_and_stays_counted_when_something_is_learned(tmp_path: Path) -> None:
    models, settings = models_of(tmp_path), ChatSettings()
    choice = models.resolve("m")
    sizer = models.sizer(choice, settings)
    assert models.sizer(choice, ChatSettings(max_trim_attempts=1)) is sizer
    assert models.sizer(choice, ChatSettings(chars_per_token=1)) is not sizer
    assert models.sizer(choice, settings, (FunctionTool("look"),)) is not sizer
    pair = answered("a")
    estimate = sizer.pair(pair)
    models.memory.learn("acme", "m", between(10, 20, 30, ""), Usage(input_tokens=60), tools=False)
    wiser = models.sizer(choice, settings)
    assert wiser is not sizer
    assert wiser.pair(pair) is estimate
    assert wiser.cost(pair) != sizer.cost(pair)


def test_so_many_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SIZERS", 1)
    models, settings = models_of(tmp_path), ChatSettings()
    first = models.sizer(models.resolve("m"), settings)
    models.sizer(models.resolve("n"), settings)
    assert models.sizer(models.resolve("m"), settings) is not first


def rows_of(left_out: str, *, limit: int = 100) -> Rows:
    history = history_of(*(answered(name) for name in "abcdef"))
    history.apply(PairsHandled(tuple(left_out), "out"))
    return Rows(view_of(history, limit=limit))


@pytest.mark.parametrize("left_out", ["", "a", "c", "f", "ab", "cd", "ef", "ace", "bdf", "abcdef"])
def test_pairs_that_were_left_out_stand_where_they_stood(left_out: str) -> None:
    rows = rows_of(left_out)
    assert ids(rows.pairs) == "abcdef"
    assert [rows.place(name) for name in "abcdef"] == list(range(6))
    assert rows.place("nobody") is None


@pytest.mark.parametrize(("left_out", "limit", "start"), [("", 100, 2), ("c", 100, 1), ("f", 70, 2), ("", 20, 6)])
def test_boundary_is_the_row_of_the_first_included_pair(left_out: str, limit: int, start: int) -> None:
    assert rows_of(left_out, limit=limit).start == start
