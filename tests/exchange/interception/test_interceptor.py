import asyncio
import gzip
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider, Route
from sightline.editing.operations import Set, SetBody, SetText, Undo
from sightline.errors import Fault
from sightline.exchange.client_request import ClientRequest, session_of
from sightline.exchange.interception.interceptor import Interceptor
from sightline.exchange.interception.rule_subject import RuleSubject, rule_line
from sightline.exchange.outbound import outbound_for
from sightline.exchange.redaction import identify_caller
from sightline.exchange.routing import route_for
from sightline.filters.fields import FIELDS, FilterScope, Kind
from sightline.filters.parsing import parse
from sightline.filters.predicate import matches
from sightline.model.exchange import (
    Answered,
    Dropped,
    Edited,
    ExchangeCancelled,
    Released,
    Translated,
)
from sightline.store.entries import FactEntry
from tests.holding import JSON, SSE, asking, held, holding, let_go, promptly, said_by
from tests.relay_stage import DIALECTS, asks, is_error_of, open_stage
from tests.reply_samples import SAYS, streamed, whole
from tests.stepping_clock import SteppingClock
from tests.upstream import answer, says

ODD = b'{ "model" : "m",\n"messages":[{"role":"user", "content":"caf\\u00e9"}] , "zeta": 1.50 }'


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


# --- a request --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("spoken", DIALECTS)
async def test_what_was_shown_is_sent_and_nothing_before(tmp_path: Path, spoken: str, stream: bool) -> None:
    async with holding(tmp_path, spoken, clock=SteppingClock()) as stage:
        frames = streamed(spoken, SAYS)
        stage.upstream.script = [
            answer(200, b"".join(frames), SSE) if stream else answer(200, whole(spoken, SAYS), JSON)
        ]
        asked = asks(spoken, stream=stream)
        async with asking(stage, asked) as (client,):
            hold = await held(stage)
            assert (hold.phase, hold.draft.data, hold.deadline) == ("request", asked.body, None)
            assert stage.kinds() == ["received", "held"]
            assert not stage.upstream.seen
            let_go(stage, hold)
        assert client.result().body == (b"".join(frames) if stream else whole(spoken, SAYS))
        assert stage.upstream.seen[0].body == asked.body
        assert stage.kinds() == ["received", "held", "released", "attempt", "finished"]
        assert not stage.relay.holds.waiting


async def test_edited_body_is_recorded_first_and_sent_uncompressed(tmp_path: Path) -> None:
    packed = gzip.compress(ODD)
    headers = (("Content-Encoding", "gzip"), ("Content-Length", str(len(packed))))

    async with holding(tmp_path) as stage:
        asked = asks("openai-chat", body=ODD, coded=packed, coding="gzip", headers=headers)
        async with asking(stage, asked) as _:
            edit = Set(pointer="/messages/0/content", value="tea")
            hold = stage.relay.holds.edit("x_1", edit)
            after = ODD.replace(b"caf\\u00e9", b"tea")
            assert hold.draft.data == after
            assert stage.facts()[-1] == Edited("set", digest(ODD), digest(after))
            assert stage.bodies()[digest(after)] == after
            let_go(stage, hold)
        seen = stage.upstream.seen[0]
        assert (seen.body, seen.header("content-encoding")) == (after, "")
        assert seen.header("content-length") == str(len(after))
        released, attempt = stage.facts()[3:5]
        assert released == Released(attempt.sha256) == Released(digest(after))


async def test_an_edit_that_was_undone_sends_the_clients_own_bytes(tmp_path: Path) -> None:
    packed = gzip.compress(ODD)

    async with holding(tmp_path) as stage:
        asked = asks("openai-chat", body=ODD, coded=packed, coding="gzip", headers=(("Content-Encoding", "gzip"),))
        async with asking(stage, asked) as _:
            stage.relay.holds.edit("x_1", Set(pointer="/zeta", value=2))
            hold = stage.relay.holds.edit("x_1", Undo())
            let_go(stage, hold)
        assert stage.upstream.seen[0].body == packed
        assert stage.kinds() == ["received", "held", "edited", "edited", "released", "attempt", "finished"]


async def test_what_is_held_of_a_translated_request_is_what_the_provider_gets(tmp_path: Path) -> None:
    async with holding(tmp_path, "anthropic") as stage:
        async with asking(stage, asks("openai-chat")) as (client,):
            hold = await held(stage)
            assert json.loads(hold.draft.data)["max_tokens"]
            assert (hold.draft.dialect, hold.choice.dialect) == ("anthropic", "anthropic")
            assert hold.report is not None
            stage.relay.holds.edit("x_1", Set(pointer="/max_tokens", value=7))
            let_go(stage, hold)
        assert stage.upstream.seen[0].json()["max_tokens"] == 7
        assert client.result().json()["choices"][0]["message"]["content"] == "Hello there."
        facts = stage.facts()
        assert isinstance(facts[1], Translated)
        assert [type(fact) for fact in facts].count(Translated) == 1
        assert [str(type(fact).__struct_config__.tag) for fact in facts] == [
            "received", "translated", "held", "edited", "released", "attempt", "finished",
        ]  # fmt: skip


async def test_the_model_of_a_path_stays_where_the_body_names_another(tmp_path: Path) -> None:
    async with holding(tmp_path, "gemini") as stage:
        async with asking(stage, asks("gemini")) as _:
            body = b'{"model":"other","contents":[{"role":"user","parts":[{"text":"hi"}]}]}'
            let_go(stage, stage.relay.holds.edit("x_1", SetBody(body=body.decode())))
        seen = stage.upstream.seen[0]
        assert (seen.body, "models/m:" in seen.target) == (body, True)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("spoken", DIALECTS)
async def test_dropped_request_is_a_non_retryable_error(tmp_path: Path, spoken: str, stream: bool) -> None:
    async with holding(tmp_path, spoken, clock=SteppingClock()) as stage:
        async with asking(stage, asks(spoken, stream=stream)) as (client,):
            stage.relay.holds.drop("x_1", "not today")
            assert stage.facts()[-1] == Dropped("not today")
        got = client.result()
        assert got.status == 400
        assert is_error_of(spoken, got.status, got.body)
        assert b"this request was dropped in Sightline: not today" in got.body
        assert stage.kinds() == ["received", "held", "dropped"]
        assert not stage.upstream.seen


@pytest.mark.parametrize(("on_timeout", "last"), [("send", "finished"), ("drop", "dropped")])
async def test_rule_decides_after_its_timeout(tmp_path: Path, on_timeout: str, last: str) -> None:
    clock = SteppingClock()

    async with open_stage(tmp_path, clock=clock) as stage:
        stage.relay.holds.set_rules([{"filter": "", "timeout_s": 30, "on_timeout": on_timeout}])
        async with asking(stage, asks("openai-chat")) as (client,):
            hold = await held(stage)
            assert (hold.deadline, hold.rule.on_timeout) == (hold.since + 30, on_timeout)
            stage.relay.holds.edit("x_1", Set(pointer="/messages/0/content", value="as it stands"))
            await clock.asleep()
            await clock.forward(29)
            assert stage.relay.holds.waiting
            await clock.forward(1)
        assert client.result().status == (200 if on_timeout == "send" else 400)
        assert [b"as it stands" in seen.body for seen in stage.upstream.seen] == ([True] if last == "finished" else [])
        assert stage.kinds()[-1] == last
        assert not clock.sleepers


async def test_a_decision_in_time_ends_the_limit(tmp_path: Path) -> None:
    clock = SteppingClock()

    async with open_stage(tmp_path, clock=clock) as stage:
        stage.relay.holds.set_rules([{"filter": "", "timeout_s": 30}])
        async with asking(stage, asks("openai-chat")) as _:
            await clock.asleep()
            let_go(stage, await held(stage))
        assert not clock.sleepers


@pytest.mark.parametrize("limit", [None, 30.0])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_ends_its_hold_at_once(tmp_path: Path, stream: bool, limit: float | None) -> None:
    async with open_stage(tmp_path, clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules([{"filter": "", "timeout_s": limit}])
        client = asyncio.get_running_loop().create_task(stage.ask(asks("openai-chat", stream=stream)))
        hold = await held(stage)
        client.cancel()
        with pytest.raises(asyncio.CancelledError):
            await client
        assert stage.facts()[-1] == ExchangeCancelled("client_gone")
        assert not stage.relay.holds.waiting
        with pytest.raises(Fault, match="not held") as caught:
            let_go(stage, hold)
        assert caught.value.status == 409
        assert not stage.upstream.seen
        assert not stage.relay._active


@pytest.mark.parametrize("stream", [False, True])
async def test_shutdown_answers_each_held_client_and_cancels_its_hold(tmp_path: Path, stream: bool) -> None:
    async with holding(tmp_path, "anthropic", clock=SteppingClock()) as stage:
        async with asking(stage, asks("anthropic", stream=stream), asks("anthropic", stream=stream)) as clients:
            await promptly(stage.relay.close(3600))
        assert [client.result().status for client in clients] == [503, 503]
        assert is_error_of("anthropic", 503, clients[0].result().body)
        assert stage.kinds("x_1") == stage.kinds("x_2") == ["received", "held", "cancelled"]
        assert stage.facts("x_1")[-1] == ExchangeCancelled("shutdown")


async def test_holds_stand_in_order_of_arrival_and_do_not_end_each_other(tmp_path: Path) -> None:
    async with holding(tmp_path) as stage:
        holds = stage.relay.holds
        first = asks("openai-chat", session="same")
        body = b'{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"user","content":"more"}]}'
        async with asking(stage, first, asks("openai-chat", body=body, session="same"), first) as clients:
            assert [hold.exchange for hold in holds.waiting] == ["x_1", "x_2", "x_3"]
            let_go(stage, holds.hold_of("x_2"))
            await promptly(asyncio.shield(clients[1]))
            assert [hold.exchange for hold in holds.waiting] == ["x_1", "x_3"]
            holds.set_rules([])
            holds.set_mode("off")
            assert len(holds.waiting) == 2
            holds.drop("x_1")
            let_go(stage, holds.hold_of("x_3"))
        assert [stage.kinds(f"x_{n}")[-1] for n in (1, 2, 3)] == ["dropped", "finished", "finished"]


async def test_one_that_is_held_does_not_take_the_embedded_models_turn(tmp_path: Path) -> None:
    local = Provider(
        dialect="openai-chat", base_url="${SIGHTLINE_LOCAL_URL}", key_env="SIGHTLINE_LOCAL_KEY", embedded=True
    )
    async with holding(tmp_path, others={"local": local}, routes=(Route(provider="local"),)) as stage:
        async with asking(stage, asks("openai-chat"), asks("openai-chat")) as clients:
            assert len(stage.relay.holds.waiting) == 2
            for hold in stage.relay.holds.waiting:
                let_go(stage, hold)
        assert [client.result().status for client in clients] == [200, 200]


async def test_rules_can_drop_and_pass_requests_automatically(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.relay.holds.set_rules(
            [
                {"filter": "session:bad", "action": "drop"},
                {"filter": 'text:"let me through" provider:acme', "action": "pass"},
                {"filter": "model:m", "action": "drop"},
            ]
        )
        stage.upstream.script = [answer(200, whole("openai-chat", SAYS), JSON)]
        body = b'{"model":"m","messages":[{"role":"user","content":"please let me through"}]}'
        assert (await stage.ask(asks("openai-chat", session="bad"))).status == 400
        assert (await stage.ask(asks("openai-chat", body=body))).status == 200
        assert (await stage.ask(asks("openai-chat"))).status == 400
        assert stage.facts("x_1")[-1] == Dropped("a rule drops it (session:bad)")
        assert stage.kinds("x_2") == ["received", "attempt", "finished"]
        stage.relay.holds.set_rules([{"filter": "", "action": "drop"}])
        assert "drops everything" in str((await stage.ask(asks("openai-chat"))).json())


async def test_a_rule_for_once_and_the_next_request_are_used_up(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        holds = stage.relay.holds
        for begin in (lambda: holds.set_mode("next"), lambda: holds.set_rules([{"filter": "", "once": True}])):
            begin()
            assert not holds.is_idle
            async with asking(stage, asks("openai-chat")) as _:
                assert holds.is_idle
                assert (await promptly(stage.ask(asks("openai-chat")))).status == 200
                let_go(stage, await held(stage))


async def test_token_counting_request_is_not_held(tmp_path: Path) -> None:
    async with holding(tmp_path, "anthropic") as stage:
        stage.upstream.script = [says({"input_tokens": 3})]
        got = await stage.ask(asks("anthropic", path="/v1/messages/count_tokens", counts=True))
        assert got.json() == {"input_tokens": 3}


async def test_interceptor_is_not_called_when_interception_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuses(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(Interceptor, "apply_masks", refuses)
    monkeypatch.setattr(Interceptor, "hold_request", refuses)
    monkeypatch.setattr(Interceptor, "hold_calls", refuses)
    monkeypatch.setattr("sightline.exchange.relay.run_with_keepalive", refuses)

    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [answer(200, b"".join(streamed("openai-chat")), SSE)]
        assert (await stage.ask(asks("openai-chat", stream=True))).status == 200
        stage.relay.holds.set_rules([{"filter": ""}])
        stage.relay.holds.set_mode("off")
        assert (await stage.ask(asks("openai-chat", stream=True))).status == 200


async def test_what_is_looked_at_is_translated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(
        "sightline.exchange.run.outbound_for", lambda *given: calls.append(given) or outbound_for(*given)
    )

    async with open_stage(tmp_path, "anthropic") as stage:
        stage.relay.holds.set_rules([{"filter": "model:another"}])
        assert (await stage.ask(asks("openai-chat"))).status == 200
        assert len(calls) == 1


# --- answered by hand -------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("spoken", DIALECTS)
async def test_a_person_may_answer_in_the_models_place(tmp_path: Path, spoken: str, stream: bool) -> None:
    call = {"type": "tool_call", "name": "Bash", "arguments": '{"command":"ls"}'}

    async with holding(tmp_path, spoken, clock=SteppingClock()) as stage:
        async with asking(stage, asks(spoken, stream=stream)) as (client,):
            stage.relay.holds.answer("x_1", {"parts": [{"type": "text", "text": "I look."}, call]})
            answered = stage.facts()[-1]
            assert isinstance(answered, Answered)
            assert json.loads(stage.bodies()[answered.sha256])["parts"][0]["text"] == "I look."
        got = client.result()
        assert (got.status, b"I look." in got.body, b"Bash" in got.body) == (200, True, True)
        assert got.header("content-type").startswith("text/event-stream" if stream else "application/json")
        assert got.header("x-sightline-exchange") == "x_1"
        assert stage.raw_reply() == got.body
        last = stage.facts()[-1]
        assert (last.finish, last.tools, last.status, last.usage) == ("tool_calls", ("Bash",), 200, None)
        stored = ["stored"] if spoken == "openai-responses" else []  # its client can ask for it again
        assert stage.kinds() == ["received", "held", "answered", *stored, "finished"]
        assert not stage.upstream.seen


async def test_chat_client_gets_usage_of_a_written_reply_only_if_requested(tmp_path: Path) -> None:
    async with holding(tmp_path, clock=SteppingClock()) as stage:
        body = json.loads(asks("openai-chat", stream=True).body) | {"stream_options": {"include_usage": True}}
        wanting = asks("openai-chat", stream=True, body=json.dumps(body).encode())
        unread = asks("openai-chat", stream=True, body=b'{"messages":3}')
        reply = said_by("ok") | {"usage": {"input_tokens": 5, "output_tokens": 1}}
        async with asking(stage, wanting, asks("openai-chat", stream=True), unread) as clients:
            for number in (1, 2, 3):
                stage.relay.holds.answer(f"x_{number}", reply)
        assert [b'"prompt_tokens":5' in client.result().body for client in clients] == [True, False, False]


async def test_request_that_cannot_be_recorded_is_rejected_instead_of_held(tmp_path: Path) -> None:
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    async with holding(tmp_path) as stage:
        stage.hub._record = full
        got = await stage.ask(asks("anthropic"))
        assert got.status == 503
        assert "cannot be held" in got.json()["error"]["message"]
        assert got.header("x-sightline-exchange") == ""
        assert not stage.relay.holds.waiting
        assert not stage.upstream.seen


# --- tool calls -------------------------------------------------------------------------------------


async def test_calls_that_repeat_a_credential_are_not_kept(tmp_path: Path) -> None:
    key = "sk-of-the-client-0123456789"

    async with open_stage(tmp_path) as stage:
        holds = stage.relay.holds
        holds.set_rules([{"filter": "", "phase": "tool_calls"}])
        reply = whole("openai-chat").replace(b"Rome", key.encode())
        stage.upstream.script = [answer(200, reply, JSON)]
        headers = (("Content-Type", "application/json"), ("Authorization", f"Bearer {key}"))
        async with asking(stage, asks("openai-chat", headers=headers)) as (client,):
            hold = await held(stage)
            assert key in hold.draft.data.decode(), "the person sees what the client will get"
            holds.edit("x_1", SetText(section="s1", text=f'{{"city":"{key}","now":true}}'))
            edited = hold.draft.sha256
            let_go(stage, hold)
        assert key in client.result().body.decode()
        assert not any(key.encode() in data for data in stage.bodies().values())
        assert [fact.after for fact in stage.facts() if isinstance(fact, Edited)] == [edited]


# --- masks ------------------------------------------------------------------------------------------

TWO = b'{"model":"m","messages":[{"role":"user","content":"my name is Ann"},{"role":"user","content":"hi"}]}'


async def test_a_kept_edit_is_made_again_on_later_requests_held_or_not(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        holds = stage.relay.holds
        holds.set_mode("next")
        stage.upstream.script = [answer(200, whole("openai-chat", SAYS), JSON)]
        asked = asks("openai-chat", body=TWO, session="blue")
        async with asking(stage, asked) as _:
            section = next(each.id for each in holds.hold_of("x_1").draft.sections if "Ann" in each.text)
            let_go(stage, holds.edit("x_1", SetText(section=section, text="my name is Bo", keep="session")))
        after = TWO.replace(b"Ann", b"Bo")
        assert not holds.is_idle
        longer = TWO.replace(b'"hi"}', b'"hi"},{"role":"user","content":"there"}')
        await stage.ask(asks("openai-chat", body=longer, session="blue"))
        await stage.ask(asks("openai-chat", body=longer, session="red"))
        assert [seen.body for seen in stage.upstream.seen] == [after, longer.replace(b"Ann", b"Bo"), longer]
        received, edited, attempt, _ = stage.facts("x_2")
        assert edited == Edited("mask", received.sha256, attempt.sha256)
        assert stage.bodies()[attempt.sha256] == stage.upstream.seen[1].body
        assert [each.outcome for each in holds.outcomes("x_2")] == ["applied"]
        assert stage.kinds("x_3") == ["received", "attempt", "finished"]
        holds.set_mode("every")
        async with asking(stage, asked) as _:
            hold = await held(stage)
            assert (hold.draft.data, hold.draft.is_dirty, len(hold.masks)) == (after, True, 1)
            let_go(stage, hold)
        assert stage.upstream.seen[3].body == after


async def test_a_request_that_no_mask_is_meant_for_is_not_even_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("sightline.exchange.interception.interceptor.Draft.of", refuses)

    async with open_stage(tmp_path) as stage:
        strip = {"kind": "strip", "strip": {"class": "thinking"}}
        stage.relay.holds.set_masks(
            [{**strip, "scope": "session", "name": "blue"}, {**strip, "scope": "project", "name": "shop"}]
        )
        stage.upstream.script = [answer(200, whole("openai-chat", SAYS), JSON)]
        for session in ("red", "red@mill", ""):
            assert (await stage.ask(asks("openai-chat", body=TWO, session=session))).status == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_a_sender_may_want_to_look_whatever_the_rules_say(tmp_path: Path, stream: bool) -> None:
    async with open_stage(tmp_path) as stage:
        frames = b"".join(streamed("openai-chat", SAYS))
        stage.upstream.script = [answer(200, frames, SSE) if stream else answer(200, whole("openai-chat", SAYS), JSON)]
        assert stage.relay.holds.is_idle
        async with asking(stage, asks("openai-chat", stream=stream, hold=True)) as (task,):
            let_go(stage, await held(stage))
            assert (await task).status == 200
        stage.relay.holds.set_rules([{"filter": "", "action": "pass"}])
        stage.relay.holds.set_mode("rules")
        async with asking(stage, asks("openai-chat", stream=stream, hold=True)) as (task,):
            let_go(stage, await held(stage))
            assert (await task).status == 200
        assert stage.kinds("x_2") == ["received", "held", "released", "attempt", "finished"]


BODY = json.dumps(
    {
        "model": "m",
        "messages": [{"role": "system", "content": "Be café brief"}, {"role": "user", "content": "drop the tables"}],
    }
).encode()


def stopped(asked: ClientRequest, tools: tuple[str, ...] = ()) -> RuleSubject:
    catalog = Catalog(providers={"acme": Provider(dialect="openai-chat")}, routes=(Route(provider="acme"),))
    choice = route_for(catalog, asked, lambda _: True)
    caller = identify_caller(asked.headers, asked.path, asked.query, ())
    received = FactEntry("x_1", 0, 4.0, caller.arrival_fact(asked, ""))
    line = rule_line(received, asked, choice, at=5.0, losses=2, tools=tools)
    return RuleSubject(line, asked.dialect, asked.body)


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


def test_every_field_that_a_rule_may_name_has_a_value() -> None:
    subject = stopped(asks("openai-chat"))
    named = {"age": "at", "date": "at"}
    known = [each for each in FIELDS if FilterScope.RULES in each.scopes and each.kind is not Kind.WORDS]
    assert [each.name for each in known if subject.value(named.get(each.name, each.name)) is None] == []


def test_text_is_extracted_only_if_the_filter_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[str] = []
    monkeypatch.setattr(
        "sightline.exchange.interception.rule_subject.digest_of", lambda name, _body: asked_for.append(name)
    )
    assert not matches(parse("model:other & text:a"), stopped(asks("openai-chat")), now=0.0)
    assert not asked_for


def test_a_session_is_named_by_the_path_or_by_the_client() -> None:
    by_header = asks("anthropic", headers=(("X-Claude-Code-Session-Id", "s-1"),))
    assert session_of(by_header) == "s-1"
    assert session_of(asks("anthropic", session="blue", headers=by_header.headers)) == "blue"
    assert session_of(asks("anthropic")) == ""
