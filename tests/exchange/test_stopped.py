import json

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.catalog.route import Route
from sightline.exchange.client_request import ClientRequest, session_of
from sightline.exchange.interception.interceptor import RuleSubject
from sightline.exchange.routing import route_for
from sightline.filters.parsing import parse
from sightline.filters.predicate import matches
from tests.relay_stage import asks

BODY = json.dumps(
    {
        "model": "m",
        "messages": [{"role": "system", "content": "Be café brief"}, {"role": "user", "content": "drop the tables"}],
    }
).encode()


def stopped(asked: ClientRequest, tools: tuple[str, ...] = ()) -> RuleSubject:
    catalog = Catalog(providers={"acme": Provider(dialect="openai-chat")}, routes=(Route(provider="acme"),))
    choice = route_for(catalog, asked, lambda _: True)
    return RuleSubject("x_1", asked, choice, at=5.0, losses=2, tools=tools)


@pytest.mark.parametrize(
    ("told", "is_taken"),
    [
        ("model:m provider:acme dialect:openai-chat session:blue", True),
        ("session:red", False),
        ('text:"drop the"', True),
        ("text:CAFÉ", True),
        ("text:nothing", False),
        ("client:openai* & stream & path:*/completions & losses>1", True),
        ("side", False),
        ("state:received & origin:x_0", True),
        ("tool:Bash", True),
        ("!tool:Read", True),
        ("tokens>3", False),
    ],
)
def test_a_rule_can_ask_what_is_known_before_a_request_leaves(told: str, is_taken: bool) -> None:
    asked = asks(
        "openai-chat",
        body=BODY,
        session="blue",
        stream=True,
        headers=(("User-Agent", "OpenAI/Python 1"),),
        origin="x_0",
    )
    assert matches(parse(told), stopped(asked, tools=("Bash",)), now=10.0) is is_taken


def test_the_words_are_read_only_if_somebody_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[str] = []
    monkeypatch.setattr(
        "sightline.exchange.interception.interceptor.digest_of", lambda name, _body: asked_for.append(name)
    )
    assert not matches(parse("model:other & text:a"), stopped(asks("openai-chat")), now=0.0)
    assert not asked_for


def test_a_session_is_named_by_the_path_or_by_the_client() -> None:
    by_header = asks("anthropic", headers=(("X-Claude-Code-Session-Id", "s-1"),))
    assert session_of(by_header) == "s-1"
    assert session_of(asks("anthropic", session="blue", headers=by_header.headers)) == "blue"
    assert session_of(asks("anthropic")) == ""
