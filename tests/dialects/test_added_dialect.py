"""A dialect of another package takes part in everything, without a line elsewhere: the laws hold for it as well."""

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from sightline.app.configuration import configuration
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import choose
from sightline.catalog.compose import Prompt
from sightline.catalog.facts import Facts
from sightline.catalog.fitting import make_native_tool
from sightline.catalog.loading import load
from sightline.catalog.toml import TomlText
from sightline.dialects import registry
from sightline.dialects.endpoint import match_path
from sightline.dialects.registry import (
    PROVIDER_DIALECTS,
    dialect,
    dialects,
    find_dialect,
    kind_of_hosted_tool,
    names,
    register,
    unregister,
)
from sightline.editing.draft import Draft
from sightline.errors import Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.outbound import prepare
from sightline.gateway.paths import caller_of, parse_path
from sightline.model.fold import fold
from sightline.model.parts import Text
from sightline.model.request import Message, OpaqueTool
from sightline.settings import Settings
from sightline.tokens.estimator import Estimator
from sightline.wire.jsontext import decode
from tests.background import upstream_in_background
from tests.contract import test_law_1_verbatim as law_1
from tests.contract import test_law_2_surgical as law_2
from tests.contract import test_law_3_no_silent_loss as law_3
from tests.contract import test_law_4_stream_is_whole as law_4
from tests.contract import test_law_5_no_false_success as law_5
from tests.contract import test_law_7_valid as law_7
from tests.contract.test_law_4_stream_is_whole import read_stream
from tests.dialects.plain_dialect import DIALECT, NAME
from tests.gateway_server import served
from tests.http_call import call
from tests.relay_stage import REQUESTS, asks, open_stage
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
    assert caller_of(parse_path("/v1/models"), [(b"x-plain-key", b"1")], "") == NAME


def test_a_built_in_dialect_cannot_be_replaced() -> None:
    with pytest.raises(Fault, match="is built in"):
        register(dialect("gemini"))


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The registry as at the start of a process in which one dialect was registered; as it was after the test."""
    monkeypatch.setattr(registry, "_known", {NAME: DIALECT})
    registry._entry_points.cache_clear()
    yield
    registry._entry_points.cache_clear()


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
    law_5.test_a_failed_stream_says_so_in_its_own_way(NAME, begun)
    for other in registry.NAMES:
        law_5.test_an_error_body_keeps_its_words_and_its_status_across_dialects(NAME, other)
        law_5.test_an_error_body_keeps_its_words_and_its_status_across_dialects(other, NAME)


def test_law_7_valid() -> None:
    law_7.test_a_generated_request_is_valid_in_every_dialect(source=NAME)


# --- a provider of it in the configuration -----------------------------------------------------------


def test_a_configured_provider_of_it_is_reached_through_the_gateway(tmp_path: Path) -> None:
    with upstream_in_background() as upstream:
        upstream.script = [says(REPLY), says(REPLY)]
        config = f'[providers.acme]\ndialect = "{NAME}"\nbase_url = "{upstream.url}"\n'
        with served(tmp_path, config) as server:
            for path, body in (("/v1/plain/turns", REQUEST), ("/v1/chat/completions", REQUESTS["openai-chat"])):
                assert b"Hello there" in call("POST", f"{server.url}/p/acme{path}", body).body
        assert json.loads(upstream.seen[0].body) == REQUEST
        assert json.loads(upstream.seen[1].body) == {"model": "m", "turns": [{"who": "person", "says": "hi"}]}


def test_a_question_of_our_own_is_composed_for_it(tmp_path: Path) -> None:
    catalog = configured(tmp_path, f'[providers.acme]\ndialect = "{NAME}"\nbase_url = "http://127.0.0.1:1"\n')
    choice = choose(catalog, "acme/m", has_key=lambda _provider: True)
    prompt = Prompt((Message("user", (Text("hi"),)),), max_tokens=50, stream=False)
    turns = [{"who": "person", "says": "hi"}]
    assert decode(prepare(prompt, choice).body) == {"model": "m", "turns": turns, "limit": 50, "stream": False}
    with pytest.raises(Fault, match="plain has no such option"):
        prepare(replace(prompt, seed=1), choice)
    search = make_native_tool("web_search")
    with pytest.raises(Fault, match="'web_search' cannot be offered"):
        prepare(replace(prompt, tools=(search,)), choice)
    assert kind_of_hosted_tool(OpaqueTool(NAME, search.value)) is None


def configured(folder: Path, text: str) -> Catalog:
    file = folder / "sightline.toml"
    file.write_text(text)
    return configuration(str(file)).catalog


def test_it_can_be_a_further_dialect_of_a_provider_and_of_a_route(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGHTLINE_PROVIDERS_ACME_ALSO_PLAIN", "http://127.0.0.1:2")
    text = '[providers.acme]\nbase_url = "http://127.0.0.1:1"\nhome = ["plain"]\n'
    catalog = configured(tmp_path, f'{text}[[routes]]\ndialect = "plain"\nprovider = "acme"\n')
    acme = catalog.providers["acme"]
    assert (acme.also, acme.home) == ({NAME: "http://127.0.0.1:2"}, (NAME,))
    assert catalog.routes[0].dialect == NAME


@pytest.mark.parametrize("wrong", ["plian", "raw"])
def test_an_unknown_dialect_or_one_that_no_provider_speaks_is_refused_with_the_known_ones(wrong: str) -> None:
    text = f'[providers.acme]\nbase_url = "http://127.0.0.1:1"\ndialect = "{wrong}"\nalso = {{ {wrong} = "" }}\n'
    problems = load([TomlText("mine.toml", text)], {}, Settings, dialects=PROVIDER_DIALECTS).problems
    known = '"anthropic", "gemini", "openai-chat", "openai-responses", "plain"'
    assert [problem.message for problem in problems] == [
        f'providers.acme.dialect must be one of {known}, not "{wrong}"',
        f'providers.acme.also has no key "{wrong}"',
    ]
    assert len(PROVIDER_DIALECTS) == 5


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


async def test_a_client_of_it_reaches_its_provider_verbatim(tmp_path: Path) -> None:
    async with open_stage(tmp_path, NAME) as stage:
        stage.upstream.script = [says(REPLY), streams(*FRAMES)]
        got = await stage.ask(plain_request())
        assert got.json() == REPLY
        assert (await stage.ask(plain_request(stream=True))).body == b"".join(FRAMES)
        first = stage.upstream.seen[0]
        assert json.loads(first.body) == REQUEST


@pytest.mark.parametrize("provider", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_of_it_reaches_any_provider(tmp_path: Path, provider: str, stream: bool) -> None:
    async with open_stage(tmp_path, provider) as stage:
        stage.upstream.script = [streams(*streamed(provider)) if stream else says(decode(whole(provider)))]
        got = await stage.ask(plain_request(stream=stream))
        assert got.status == 200
        reply = fold(read_stream(NAME, [got.body]) if stream else DIALECT.read_reply(decode(got.body)))
        assert reply.fault is None
        assert reply.choice.parts


@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("stream", [False, True])
async def test_any_client_reaches_a_provider_of_it(tmp_path: Path, client: str, stream: bool) -> None:
    async with open_stage(tmp_path, NAME) as stage:
        stage.upstream.script = [streams(*FRAMES) if stream else says(REPLY)]
        got = await stage.ask(asks(client, stream=stream))
        assert got.status == 200
        assert b"Hello" in got.body
        assert stage.upstream.seen[0].target.startswith("/v1/plain/turns")
