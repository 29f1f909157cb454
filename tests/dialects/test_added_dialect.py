"""A dialect of another package takes part in everything, without a line elsewhere: the laws hold for it as well."""

import json
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects import registry
from sightline.dialects.paths import dialect_by_client, match_path
from sightline.dialects.registry import dialect, dialects, find_dialect, names, register, unregister
from sightline.editing.draft import Draft
from sightline.errors import Fault
from sightline.exchange.client_request import ClientRequest
from sightline.gateway.paths import parse_path
from sightline.model.fold import fold
from sightline.tokens.estimator import Estimator
from sightline.wire.jsontext import decode
from tests.contract import test_law_1_verbatim as law_1
from tests.contract import test_law_2_surgical as law_2
from tests.contract import test_law_3_no_silent_loss as law_3
from tests.contract import test_law_4_stream_is_whole as law_4
from tests.contract import test_law_5_no_false_success as law_5
from tests.contract import test_law_7_valid as law_7
from tests.contract.test_law_4_stream_is_whole import read_stream
from tests.dialects.plain_dialect import DIALECT, NAME
from tests.relay_stage import Stage, asks, play
from tests.reply_samples import streamed, whole
from tests.upstream import says, streams

REQUEST = {"model": "m", "turns": [{"who": "person", "says": "hi"}], "limit": 50, "own": True}
REPLY = {"id": "r1", "model": "m", "says": "Hello there", "why": "stop", "counts": {"in": 3, "out": 2}}
FRAMES = [
    b'data: {"piece":"Hello "}\n\n',
    b'data: {"piece":"there"}\n\n',
    b'data: {"id":"r1","model":"m","why":"stop","counts":{"in":3,"out":2}}\n\n',
]


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register(DIALECT)
    yield
    unregister(NAME)


def test_it_is_found_by_name_path_and_client() -> None:
    assert dialect(NAME) is DIALECT
    assert NAME in names()
    assert [each.name for each in dialects()][-1] == NAME
    found = match_path(["plain", "turns"])
    assert found is not None
    assert found.dialect == NAME
    assert parse_path("/p/acme/v1/plain/turns").dialect == NAME
    assert dialect_by_client({"x-plain-key"}, "") == NAME


def test_a_built_in_dialect_cannot_be_replaced() -> None:
    with pytest.raises(Fault, match="is built in"):
        register(dialect("gemini"))


@pytest.fixture
def forgotten() -> Iterator[None]:
    """The registry as at the start of a process, before and after the test."""
    registry._entry_points.cache_clear()
    registry._load.cache_clear()
    yield
    registry._entry_points.cache_clear()
    registry._load.cache_clear()


@pytest.mark.usefixtures("forgotten")
def test_an_entry_point_names_a_module_or_a_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"by-module": "tests.dialects.plain_dialect", "by-object": "tests.dialects.plain_dialect:DIALECT"}
    entries = [EntryPoint(name, value, registry.GROUP) for name, value in values.items()]
    with monkeypatch.context() as patch:
        patch.setattr("importlib.metadata.entry_points", lambda *, group: entries if group == registry.GROUP else [])
        assert names() == (*registry.NAMES, *values, NAME)
        for name in values:
            assert find_dialect(name) is DIALECT
        assert find_dialect("elsewhere") is None


@pytest.mark.usefixtures("forgotten")
def test_without_plug_ins_there_are_no_added_names() -> None:
    assert names() == (*registry.NAMES, NAME)


# --- the laws ---------------------------------------------------------------------------------------


def test_law_1_verbatim() -> None:
    law_1.test_a_generated_request_passes_as_it_came(name=NAME)


def test_law_2_surgical() -> None:
    law_2.test_setting_a_leaf_of_a_generated_request_touches_nothing_else(name=NAME)


def test_law_3_no_silent_loss_from_it() -> None:
    law_3.test_generated_requests(source=NAME)


@pytest.mark.parametrize("source", registry.NAMES[:-1])
def test_law_3_no_silent_loss_to_it(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(law_3, "others", lambda _source: [NAME])
    law_3.test_generated_requests(source=source)


def test_law_4_stream_is_whole() -> None:
    law_4.test_what_we_stream_is_what_we_write_whole(name=NAME)
    whole_reply = fold(DIALECT.read_reply(REPLY))
    assert read_stream(NAME, [b"".join(FRAMES)])
    assert fold(read_stream(NAME, [b"".join(FRAMES)])).choice.parts[0].text == whole_reply.choice.parts[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("begun", [False, True])
def test_law_5_no_false_success(begun: bool) -> None:
    for code in law_5.KEPT:
        law_5.test_a_failed_stream_says_so_in_its_own_way(NAME, code, begun)
        for other in registry.NAMES:
            law_5.test_an_error_body_keeps_its_words_and_its_status_across_dialects(NAME, other, code)
            law_5.test_an_error_body_keeps_its_words_and_its_status_across_dialects(other, NAME, code)


def test_law_7_valid() -> None:
    law_7.test_a_generated_request_is_valid_in_every_dialect(source=NAME)


# --- what other packages know of a dialect ----------------------------------------------------------


def test_it_can_be_edited_and_counted() -> None:
    draft = Draft.of(json.dumps(REQUEST).encode(), NAME)
    assert draft.request is not None
    assert Estimator(Facts(), dialect=NAME).request(draft.request).tokens > 0


def plain_request(*, stream: bool = False) -> ClientRequest:
    body = json.dumps({**REQUEST, "stream": True} if stream else REQUEST).encode()
    return ClientRequest(
        NAME, body, headers=(("Content-Type", "application/json"),), path="/v1/plain/turns", model="m", is_stream=stream
    )


def test_a_client_of_it_reaches_its_provider_verbatim(tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        stage.upstream.script = [says(REPLY), streams(*FRAMES)]
        got = await stage.ask(plain_request())
        assert got.json() == REPLY
        assert (await stage.ask(plain_request(stream=True))).body == b"".join(FRAMES)
        first = stage.upstream.seen[0]
        assert json.loads(first.body) == REQUEST

    play(story, tmp_path, NAME)


@pytest.mark.parametrize("provider", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_of_it_reaches_any_provider(tmp_path: Path, provider: str, stream: bool) -> None:
    async def story(stage: Stage) -> None:
        stage.upstream.script = [streams(*streamed(provider)) if stream else says(decode(whole(provider)))]
        got = await stage.ask(plain_request(stream=stream))
        assert got.status == 200
        reply = fold(read_stream(NAME, [got.body]) if stream else DIALECT.read_reply(decode(got.body)))
        assert reply.fault is None
        assert reply.choice.parts

    play(story, tmp_path, provider)


@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("stream", [False, True])
def test_any_client_reaches_a_provider_of_it(tmp_path: Path, client: str, stream: bool) -> None:
    async def story(stage: Stage) -> None:
        stage.upstream.script = [streams(*FRAMES) if stream else says(REPLY)]
        got = await stage.ask(asks(client, stream=stream))
        assert got.status == 200
        assert b"Hello" in got.body
        assert stage.upstream.seen[0].target.startswith("/v1/plain/turns")

    play(story, tmp_path, NAME)
