import json

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import choose
from sightline.catalog.compose import Prompt
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.exchange.own_calls import count, path_of, question
from sightline.exchange.prepare import Prepared, prepare
from sightline.model.message import Message
from sightline.model.parts import Text


def ready(*, stream: bool = True, **provider: object) -> Prepared:
    acme = Provider(**{"base_url": "http://127.0.0.1:1", "key_env": "ACME_KEY", **provider})  # type: ignore[arg-type]
    catalog = Catalog(providers={"acme": acme}, models={"m": Model(providers=("acme",))})
    prompt = Prompt(messages=(Message("user", (Text("hi"),)),), stream=stream)
    return prepare(prompt, choose(catalog, "m", has_key=lambda _: True))


def test_a_question_is_the_prepared_body_for_the_chosen_provider() -> None:
    made = ready()
    asked = question(made, session="chat", received=3.0, tokens=7)
    assert asked.body is made.body
    assert (asked.dialect, asked.provider, asked.model, asked.is_stream) == ("openai-chat", "acme", "m", True)
    assert (asked.session, asked.received, asked.tokens, asked.counts) == ("chat", 3.0, 7, False)
    assert (asked.path, asked.query) == ("/v1/chat/completions", "")


def test_its_headers_are_a_clients_without_any_credential() -> None:
    made = ready(dialect="anthropic", headers={"Accept": "*/*"}, env_headers={"x-trace": "TRACE"})
    asked = question(made, session="ask", received=0.0)
    assert asked.headers_by_name() == {
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        "user-agent": "sightline",
    }


@pytest.mark.parametrize(
    ("spoken", "stream", "path", "query"),
    [
        ("openai-responses", True, "/v1/responses", ""),
        ("anthropic", False, "/v1/messages", ""),
        ("gemini", False, "/v1beta/models/a%20b:generateContent", ""),
        ("gemini", True, "/v1beta/models/a%20b:streamGenerateContent", "alt=sse"),
    ],
)
def test_paths_are_those_that_clients_use(spoken: str, stream: bool, path: str, query: str) -> None:
    assert path_of(spoken, "a b", stream=stream) == (path, query)


def test_a_model_that_no_path_names_may_be_called_anything() -> None:
    assert path_of("openai-chat", "../x", stream=True) == ("/v1/chat/completions", "")


def test_a_count_asks_for_nothing_else() -> None:
    asked = count(ready(dialect="gemini"), session="ask", received=1.0)
    assert (asked.counts, asked.is_stream, asked.provider) == (True, False, "acme")
    assert asked.path == "/v1beta/models/m:countTokens"
    assert json.loads(asked.body)["generateContentRequest"]["model"] == "models/m"


def test_a_question_may_be_held_and_says_how_it_was_planned() -> None:
    asked = question(ready(), session="chat", received=0.0, hold=True, budgeted=({"stage": "attempt"},))
    assert (asked.hold, asked.budgeted) == (True, ({"stage": "attempt"},))
    assert not question(ready(), session="chat", received=0.0).hold
