import hashlib
import json

import msgspec
import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import ModelChoice, choose
from sightline.catalog.compose import Prompt
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider, Quirks, Route
from sightline.errors import Code, Fault
from sightline.exchange.outbound import compose_request, prepare, target_of, write_prepared
from sightline.model.parts import Document, Inline, Text
from sightline.model.request import FunctionTool, Message

CLAUDE = Provider(base_url="http://127.0.0.1:1", dialect="anthropic")
HI = Prompt(messages=(Message("user", (Text("hi"),)),))


def choice(provider: Provider, model: Model | None = None, *routes: Route) -> ModelChoice:
    catalog = Catalog(
        providers={"acme": provider}, models={"m": model or Model(providers=("acme",))}, routes=tuple(routes)
    )
    return choose(catalog, "m", has_key=lambda _: True)


def test_the_body_is_what_the_hash_is_of() -> None:
    ready = prepare(HI, choice(Provider(base_url="http://127.0.0.1:1/v1")))
    assert json.loads(ready.body)["messages"] == [{"role": "user", "content": "hi"}]
    assert ready.sha256 == hashlib.sha256(ready.body).hexdigest()
    assert ready.call.body is ready.body
    assert ready.call.url == "http://127.0.0.1:1/v1/chat/completions"
    assert ready.is_stream


def test_a_request_that_has_grown_is_written_for_the_same_choice() -> None:
    chosen = choice(Provider(base_url="http://127.0.0.1:1/v1"))
    request = compose_request(HI, chosen)
    assert write_prepared(request, chosen, stream=True).body == prepare(HI, chosen).body
    grown = msgspec.structs.replace(request, messages=(*request.messages, Message("user", (Text("and?"),))))
    ready = write_prepared(grown, chosen, stream=False)
    assert [each["content"] for each in json.loads(ready.body)["messages"]] == ["hi", "and?"]
    assert not ready.is_stream


def test_nothing_is_lost_on_the_way_to_the_providers_dialect() -> None:
    for spoken in ("openai-chat", "openai-responses", "anthropic", "gemini"):
        ready = prepare(HI, choice(Provider(base_url="http://127.0.0.1:1", dialect=spoken)))
        assert ready.dialect == spoken
        assert ready.report.losses == ()


def test_the_providers_quirks_and_the_route_say_how_it_is_written() -> None:
    quirks = Quirks(thinking_field="reasoning", max_tokens_field="max_tokens", developer_role=False)
    route = Route(provider="acme", system="merge_all")
    target = target_of(choice(Provider(base_url="http://127.0.0.1:1", quirks=quirks), None, route))
    assert target.system == "merge_all"
    assert target.quirks == quirks


@pytest.mark.parametrize(("most", "limit"), [(None, 8192), (4096, 4096), (100_000, 8192)])
def test_a_limit_that_the_dialect_demands_is_one_that_the_model_takes(most: int | None, limit: int) -> None:
    model = Model(providers=("acme",), max_output=most)
    ready = prepare(HI, choice(CLAUDE, model))
    assert json.loads(ready.body)["max_tokens"] == limit


def test_a_model_that_cannot_call_tools_says_so() -> None:
    prompt = Prompt(messages=HI.messages, tools=(FunctionTool("f"),))
    with pytest.raises(Fault, match="tools") as caught:
        prepare(prompt, choice(Provider(base_url="http://127.0.0.1:1"), Model(providers=("acme",), tools=False)))
    assert caught.value.code is Code.INVALID_REQUEST


def test_a_strict_route_refuses_what_it_would_lose() -> None:
    pdf = Document(Inline("application/pdf", "JVBERi0="), title="paper.pdf")
    prompt = Prompt(messages=(Message("developer", (pdf,)), *HI.messages))
    assert prepare(prompt, choice(CLAUDE)).report.refusals
    with pytest.raises(Fault, match="the route to acme is strict") as caught:
        prepare(prompt, choice(CLAUDE, None, Route(provider="acme", strict=True)))
    assert caught.value.code is Code.TRANSLATION_LOSS
    assert prepare(HI, choice(CLAUDE, None, Route(provider="acme", strict=True))).body


def test_own_requests_leave_out_what_the_model_refuses_and_say_so() -> None:
    prompt = Prompt(messages=HI.messages, temperature=0.2, top_p=0.9)
    chosen = choice(CLAUDE, Model(providers=("acme",), refuses=("temperature",)))
    ready = prepare(prompt, chosen)
    assert "temperature" not in json.loads(ready.body)
    assert [(loss.pointer, loss.severity) for loss in ready.report.losses] == [("/temperature", "option")]
    assert target_of(chosen).facts is chosen.facts


def test_a_strict_route_refuses_what_the_model_would_refuse() -> None:
    chosen = choice(CLAUDE, Model(providers=("acme",), refuses=("top_p",)), Route(provider="acme", strict=True))
    with pytest.raises(Fault) as caught:
        prepare(Prompt(messages=HI.messages, top_p=0.5), chosen)
    assert caught.value.code is Code.TRANSLATION_LOSS


def test_a_version_of_the_api_that_is_configured_refuses_for_every_model() -> None:
    headers = {"Anthropic-Version": "2026-10-21"}
    provider = Provider(base_url="http://127.0.0.1:1", dialect="anthropic", headers=headers)
    ready = prepare(Prompt(messages=HI.messages, temperature=0.2), choice(provider))
    assert "temperature" not in json.loads(ready.body)
    assert [loss.pointer for loss in ready.report.losses] == ["/temperature"]


def test_a_body_that_masks_made_is_shown_with_what_is_read_in_it() -> None:
    ready = prepare(HI, choice(Provider(base_url="http://127.0.0.1:1")))
    assert ready.with_body(bytes(ready.body)) is ready
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "ho"}]}).encode()
    shown = ready.with_body(body)
    assert (shown.body, shown.call.body, shown.sha256) == (body, body, hashlib.sha256(body).hexdigest())
    assert shown.request.messages[0].parts == (Text("ho", at="/messages/0/content"),)
    assert ready.with_body(b"{").request is ready.request
