import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import sha256

import msgspec
import pytest

from sightline.errors import Code, Fault
from sightline.model.exchange import AttemptStarted
from sightline.tokens.account import RateLimits
from sightline.tokens.ledger import Ledger
from sightline.transport.http.client import HttpClient
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies, Timeouts
from sightline.transport.sender import LONGEST_ERROR, AcceptedResponse, Answer, Outgoing, RefusedResponse, Sender
from sightline.wire.call import HttpRequest
from tests.fake_clock import FakeClock
from tests.upstream import Headers, Play, Upstream, answer, chunk, cut, drip, head, pieces, says, stall

KEY = "sk-secret-0123456789"
BODY = b'{"model":"large", "messages": []}'
OK = says({"choices": []})


def fails(status: int, message: str = "no", *, code: str | None = None, headers: Headers = ()) -> Play:
    return says({"error": {"message": message, "type": None, "code": code}}, status, headers)


@dataclass
class Desk:
    """A sender with everything around it that a test looks at."""

    upstream: Upstream
    client: HttpClient
    clock: FakeClock
    ledger: Ledger = field(default_factory=Ledger)
    attempts: list[AttemptStarted] = field(default_factory=list)

    def outgoing(self, url: str = "", **settings: object) -> Outgoing:
        headers = (("content-type", "application/json"), ("authorization", f"Bearer {KEY}"))
        request = HttpRequest("POST", url or f"{self.upstream.url}/v1/chat/completions", headers, BODY)
        plain = {"dialect": "openai-chat", "stream": False, "retries": 4, "timeouts": Timeouts(), "tokens": 100}
        return Outgoing(request, "acme", "large", **{**plain, **settings})

    async def send(self, url: str = "", **settings: object) -> Answer:
        sender = Sender(self.client, self.clock, lambda: 0.5, self.ledger)
        return await sender.send(self.outgoing(url, **settings), self.attempts.append)

    async def send_and_read(self, **settings: object) -> AcceptedResponse:
        """A good answer, which is read to its end."""
        found = await self.send(**settings)
        assert not isinstance(found, RefusedResponse), found.fault
        await found.response.read()
        return found


@asynccontextmanager
async def open_desk(*script: Play, holds: bool = False) -> AsyncIterator[Desk]:
    trust, proxies = Trust(environment={}), Proxies.of({})
    async with Upstream(list(script)) as upstream, HttpClient(trust=trust, proxies=proxies) as client:
        yield Desk(upstream, client, FakeClock(holds=holds))


# --- what is recorded ---


async def test_a_credential_is_masked_in_every_recorded_header_of_every_attempt() -> None:
    async with open_desk(fails(500), says({"choices": []})) as desk:
        outgoing = desk.outgoing(secrets=("another-secret",))
        headers = (("x-api-key", KEY), ("x-note", f"by {KEY} and another-secret"), ("accept", "*/*"))
        request = HttpRequest("POST", outgoing.request.url, headers, BODY)
        sender = Sender(desk.client, desk.clock, lambda: 0.5, desk.ledger)
        await sender.send(msgspec.structs.replace(outgoing, request=request), desk.attempts.append)
        recorded = (("x-api-key", "***"), ("x-note", "by *** and ***"), ("accept", "*/*"))
        assert [attempt.headers for attempt in desk.attempts] == [recorded, recorded]
        sent = {name.lower(): value for name, value in desk.upstream.seen[0].headers}
        assert sent["x-api-key"] == KEY


# --- what is tried again --------------------------------------------------------------------------


async def test_a_good_answer_is_returned_before_its_body_is_read() -> None:
    async with open_desk(OK) as desk:
        found = await desk.send()
        assert found.response.status == 200
        assert await found.response.read() == b'{"choices": []}'
        started = AttemptStarted(
            1,
            "acme",
            sha256(BODY).hexdigest(),
            model="large",
            dialect="openai-chat",
            url=f"{desk.upstream.url}/v1/chat/completions",
            headers=(("content-type", "application/json"), ("authorization", "***")),
            key=sha256(KEY.encode()).hexdigest()[:8],
        )
        assert desk.attempts == [started]
        assert desk.upstream.seen[0].body == BODY
        assert desk.clock.waits == []


@pytest.mark.parametrize(
    ("status", "code"),
    [(429, Code.RATE_LIMITED), (500, Code.UPSTREAM_ERROR), (504, Code.TIMEOUT_IDLE), (529, Code.OVERLOADED)],
)
async def test_a_status_that_may_pass_is_tried_again(status: int, code: Code) -> None:
    async with open_desk(fails(status), fails(status), OK) as desk:
        await desk.send_and_read()
        assert [attempt.number for attempt in desk.attempts] == [1, 2, 3]
        assert [attempt.reason for attempt in desk.attempts] == ["", code.value, code.value]
        assert [attempt.detail for attempt in desk.attempts] == ["", f"{status}: no", f"{status}: no"]
        assert [attempt.waited for attempt in desk.attempts] == [0.0, *desk.clock.waits]
        assert desk.clock.waits == pytest.approx([0.2, 0.4])
        assert {seen.body for seen in desk.upstream.seen} == {BODY}
        assert {attempt.sha256 for attempt in desk.attempts} == {sha256(BODY).hexdigest()}


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (fails(400, "This model's maximum context length is 8 tokens"), Code.CONTEXT_OVERFLOW),
        (fails(401, code="invalid_api_key"), Code.AUTH),
        (fails(429, code="insufficient_quota", headers=[("Retry-After", "1")]), Code.QUOTA),
        (
            fails(429, "Request too large for gpt-x on tokens per min (TPM): Limit 30, Requested 90."),
            Code.REQUEST_TOO_LARGE_FOR_RATE,
        ),
    ],
)
async def test_final_error_is_not_retried(step: Play, code: Code) -> None:
    async with open_desk(step, OK) as desk:
        found = await desk.send()
        assert (found.fault.code, len(desk.upstream.seen)) == (code, 1)


@pytest.mark.parametrize("step", [cut(), cut(how="eof")], ids=["reset", "eof"])
async def test_a_connection_that_ends_before_the_first_byte_is_tried_again(step: Play) -> None:
    async with open_desk(step, OK) as desk:
        await desk.send_and_read()
        assert [attempt.reason for attempt in desk.attempts] == ["", "network"]


async def test_refused_connection_is_retried_and_every_attempt_reported() -> None:
    async with open_desk(OK) as desk:
        async with Upstream([OK]) as closed:
            url = closed.url
        with pytest.raises(Fault) as raised:
            await desk.send(url, retries=3)
        assert raised.value.code is Code.NETWORK
        assert raised.value.__notes__ == ["note: after 4 attempts"]
        assert [attempt.reason for attempt in desk.attempts] == ["", "network", "network", "network"]
        assert desk.clock.waits == pytest.approx([0.2, 0.4, 0.8])
        assert desk.ledger.usage("acme", "large", desk.clock.now()) == RateLimits(0, 0, 0, 0)  # none of them left


@pytest.mark.parametrize(
    ("step", "code"),
    [
        pytest.param(cut(b"HTTP/1.1 200 O", how="eof"), Code.NETWORK, id="cut in the head"),
        pytest.param(pieces(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), Code.UPSTREAM_PROTOCOL, id="no HTTP"),
        pytest.param(stall(), Code.TIMEOUT_IDLE, id="silent"),
    ],
)
async def test_nothing_is_tried_again_after_the_first_byte_or_a_long_silence(step: Play, code: Code) -> None:
    async with open_desk(step, OK) as desk:
        with pytest.raises(Fault) as raised:
            await desk.send(timeouts=Timeouts(first_byte=0.05))
        assert raised.value.code is code
        assert not hasattr(raised.value, "__notes__")
        assert len(desk.upstream.seen) == 1


async def test_a_good_answer_that_is_cut_is_not_tried_again() -> None:
    async with open_desk(cut(head(200), chunk(b"data: 1\n\n"), how="eof"), OK) as desk:
        found = await desk.send(stream=True)
        with pytest.raises(Fault) as raised:
            await found.response.read()
        assert raised.value.code is Code.NETWORK
        assert len(desk.upstream.seen) == len(desk.attempts) == 1
        await found.response.close()


async def test_a_redirect_is_not_followed() -> None:
    async with open_desk(answer(307, b"", [("Location", "https://user:pw@acme.example/v2?token=1")])) as desk:
        with pytest.raises(Fault) as raised:
            await desk.send()
        assert raised.value.code is Code.UPSTREAM_PROTOCOL
        assert "redirects are not followed" in raised.value.message
        assert "https://acme.example/v2" in raised.value.hint
        assert "token" not in raised.value.hint
        assert "user" not in raised.value.hint
        assert len(desk.upstream.seen) == 1


@pytest.mark.parametrize("key", [KEY, "sk?0123456789", "sk#0123456789", "sk/01@23456789"])
async def test_redirect_target_is_reported_without_the_credential(key: str) -> None:
    async with open_desk(answer(302, b"", [("Location", f"https://login.example/r/{key}/x?y=1")])) as desk:
        with pytest.raises(Fault) as raised:
            await desk.send(secrets=(key,))
        assert "https://login.example/r/***/x" in raised.value.hint


@pytest.mark.parametrize("location", [(), [("Location", "/v2")]])
async def test_nor_one_that_leads_nowhere_or_nearby(location: Headers) -> None:
    async with open_desk(answer(304, b"", location)) as desk:
        with pytest.raises(Fault, match="not followed"):
            await desk.send()


# --- the budget -----------------------------------------------------------------------------------


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_zero_is_zero_and_n_is_n(retries: int) -> None:
    async with open_desk(fails(503)) as desk:
        found = await desk.send(retries=retries)
        assert len(desk.attempts) == len(desk.upstream.seen) == 1 + retries
        assert len(desk.clock.waits) == retries
        assert found.fault.code is Code.OVERLOADED


# --- how long is waited ---------------------------------------------------------------------------

DATE = formatdate(FakeClock(0).now() + 1_000_000_000, usegmt=True)
LATER = formatdate(FakeClock(0).now() + 1_000_000_004, usegmt=True)


@pytest.mark.parametrize(
    ("step", "wait"),
    [
        (fails(429, headers=[("Retry-After", "2")]), 2),
        (fails(503, headers=[("Retry-After", "2")]), 2),
        (fails(429, headers=[("retry-after-ms", "1500"), ("Retry-After", "2")]), 1.5),
        (fails(429, headers=[("Retry-After", LATER), ("Date", DATE)]), 4),
        (fails(429, "Rate limit reached. Please try again in 28ms."), 0.028),
        (fails(429, "Please retry after 3 seconds."), 3),
        (fails(429, headers=[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "6s")]), 6),
        (fails(429, headers=[("x-ratelimit-remaining-tokens", "99"), ("x-ratelimit-reset-tokens", "7.5s")]), 7.5),
        (fails(429, headers=[("x-rate-limit-reset-tokens", "5")]), 5),
        (fails(500, headers=[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "6s")]), 0.2),
    ],
)
async def test_the_wait_is_what_the_provider_says(step: Play, wait: float) -> None:
    async with open_desk(step, OK) as desk:
        await desk.send_and_read()
        assert desk.clock.waits == [pytest.approx(wait)]


async def test_a_date_without_the_providers_clock_is_read_against_ours() -> None:
    async with open_desk(OK) as desk:
        later = formatdate(desk.clock.now() + 4, usegmt=True)
        desk.upstream.script = [fails(429, headers=[("Retry-After", later)]), OK]
        await desk.send_and_read()
        assert desk.clock.waits == [4]


@pytest.mark.parametrize(
    ("step", "seconds", "words"),
    [
        (fails(429, headers=[("Retry-After", "125")]), 125, "2 min 5 s"),
        (fails(429, "Rate limit reached. Please try again in 11.054s."), 11.054, "11.1 s"),
        (fails(429, "Please retry after 35 seconds."), 35, "35 s"),
        (fails(429, headers=[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "60")]), 60, "1 min"),
    ],
)
async def test_long_retry_wait_is_abandoned_and_reported(step: Play, seconds: float, words: str) -> None:
    async with open_desk(step, OK) as desk:
        found = await desk.send()
        assert found.fault.retry_after == pytest.approx(seconds)
        assert f"asked again in {words}." in found.fault.hint
        assert (len(desk.attempts), desk.clock.waits) == (1, [])


async def test_a_caller_with_more_patience_waits_longer() -> None:
    async with open_desk(fails(429, "Please try again in 11.054s."), OK) as desk:
        await desk.send_and_read(max_wait=60.0)
        assert desk.clock.waits == [pytest.approx(11.054)]


# --- what an error answer holds -------------------------------------------------------------------


async def test_an_error_can_be_passed_on_as_it_came() -> None:
    async with open_desk(answer(400, b'{ "error": {"message" : "no"} }', [("X-Request-Id", "r1")])) as desk:
        found = await desk.send()
        assert found.status == 400
        assert found.body == b'{ "error": {"message" : "no"} }'
        assert (b"X-Request-Id", b"r1") in found.headers
        assert found.fault.message == "no"


@pytest.mark.parametrize(
    ("step", "message"),
    [
        pytest.param(answer(400, b"plain words"), "plain words", id="text"),
        pytest.param(
            answer(400, gzip.compress(b'{"error":{"message":"packed"}}'), [("Content-Encoding", "gzip")]),
            "packed",
            id="gzip",
        ),
        pytest.param(
            answer(400, b"\x28\xb5\x2f\xfd", [("Content-Encoding", "zstd")]),
            "the provider answered with status 400 and no message",
            id="a coding that we do not read",
        ),
        pytest.param(answer(400), "the provider answered with status 400 and no message", id="nothing"),
        pytest.param(drip(head(400, framing="4") + b'"no"'), "no", id="byte by byte"),
    ],
)
async def test_any_error_body_gives_its_fault(step: Play, message: str) -> None:
    async with open_desk(step) as desk:
        found = await desk.send()
        assert (found.fault.code, found.fault.message) == (Code.INVALID_REQUEST, message)


@pytest.mark.parametrize(
    ("step", "idle"),
    [
        pytest.param(cut(head(401, framing="100"), b'{"error', how="eof"), 300, id="cut"),
        pytest.param(stall(head(401, framing="100"), b'{"error'), 0.05, id="stalled"),
        pytest.param(stall(head(401), chunk(b"x" * (LONGEST_ERROR + 1))), 300, id="too long"),
    ],
)
async def test_a_broken_error_body_still_gives_its_fault_by_status(step: Play, idle: float) -> None:
    async with open_desk(step) as desk:
        found = await desk.send(timeouts=Timeouts(idle=idle))
        assert (found.fault.code, len(found.body) <= LONGEST_ERROR) == (Code.AUTH, True)
        await desk.upstream.gone(0)


async def test_an_error_that_never_ends_is_not_waited_for() -> None:
    async def forever(talk: object) -> None:
        await talk.say(head(503))
        while True:
            await talk.drip(chunk(b"."))

    async with open_desk(forever) as desk:
        found = await desk.send(retries=0, timeouts=Timeouts(idle=0.05))
        assert found.fault.code is Code.OVERLOADED
        await desk.upstream.gone(0)


async def test_a_credential_that_the_provider_repeats_is_not_spread() -> None:
    echo = {"error": {"message": f"bad key {KEY} for team-7-token, url key query-key", "param": [KEY]}}

    async with open_desk(says(echo, 401)) as desk:
        url = f"{desk.upstream.url}/v1?key=query-key&alt=sse"
        found = await desk.send(url, secrets=("team-7-token",))
        assert found.fault.message == "bad key *** for ***, url key ***"
        assert str(found.fault) == found.fault.message
        assert KEY not in json.dumps(found.fault.details)
        assert KEY not in repr(found)
        assert KEY not in repr(desk.outgoing(url))
        assert KEY.encode() in found.body


async def test_attempt_url_is_reported_without_credentials() -> None:
    async with open_desk(OK) as desk:
        url = f"{desk.upstream.url}/v1/team-7-token/x?Key=query-key&alt=sse&%61pi_key=q2"
        await desk.send(url, secrets=("team-7-token",))
        assert desk.attempts[0].url == f"{desk.upstream.url}/v1/***/x?Key=***&alt=sse&%61pi_key=***"


@pytest.mark.parametrize("status", [600, 999])
async def test_a_status_that_http_does_not_have_is_no_answer_of_the_api(status: int) -> None:
    async with open_desk(answer(status, f"no {KEY} here".encode())) as desk:
        with pytest.raises(Fault, match=f"status {status}, which HTTP does not have: no \\*\\*\\* here") as raised:
            await desk.send(retries=2)
        assert raised.value.code is Code.UPSTREAM_PROTOCOL
        assert len(desk.attempts) == 1


async def test_key_is_masked_in_attempt_details() -> None:
    async with open_desk(fails(500, f"{KEY} failed{'.' * 500}"), OK) as desk:
        await desk.send_and_read()
        assert desk.attempts[1].detail.startswith("500: *** failed")
        assert len(desk.attempts[1].detail) == 200


# --- what goes wrong here -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Retry-After", "Date", "x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"])
@pytest.mark.parametrize("status", [200, 429])
async def test_impossible_date_header_is_ignored(name: str, status: int) -> None:
    async with open_desk(says({}, status, [(name, "Mon, 01 Jan 99999999999 00:00:00 GMT")])) as desk:
        found = await desk.send(retries=0)
        if isinstance(found, AcceptedResponse):
            await found.response.read()
        assert isinstance(found, AcceptedResponse if status == 200 else RefusedResponse)


class Careless(Ledger):
    """A ledger that cannot read what it is told."""

    def observe_headers(self, *_: object) -> None:
        raise OverflowError

    keep_headers = observe_headers


@pytest.mark.parametrize("status", [200, 503])
async def test_response_is_closed_if_the_ledger_fails(status: int) -> None:
    limits = [("x-ratelimit-limit-requests", "10")]
    async with open_desk(stall(head(status, limits), chunk(b"{"))) as desk:
        desk.ledger = Careless()
        with pytest.raises(OverflowError):
            await desk.send()
        await desk.upstream.gone(0)


# --- the ledger -----------------------------------------------------------------------------------


async def test_a_request_that_is_refused_here_uses_nothing_up() -> None:
    async with open_desk() as desk:
        with pytest.raises(Fault) as raised:
            await desk.send("ftp://example.com/v1")
        assert raised.value.code is Code.INVALID_REQUEST
        assert desk.ledger.usage("acme", "large", desk.clock.now()) == RateLimits(0, 0, 0, 0)


async def test_a_request_whose_answer_never_came_was_sent_all_the_same() -> None:
    async with open_desk(cut()) as desk:
        with pytest.raises(Fault):
            await desk.send(retries=0)
        assert desk.ledger.usage("acme", "large", desk.clock.now()) == RateLimits(1, 0, 1, 0)


async def test_the_ledger_hears_of_attempts_limits_and_use() -> None:
    limits = [("x-ratelimit-limit-tokens", "1000"), ("x-ratelimit-remaining-tokens", "900")]

    async with open_desk(fails(503), says({}, headers=limits)) as desk:
        found = await desk.send_and_read()
        now = desk.clock.now()
        assert desk.ledger.usage("acme", "large", now) == RateLimits(2, 100, 2, 100)
        assert desk.ledger.limits("acme", "large") == RateLimits(tpm=1000)
        desk.ledger.settle(found.sent, 37, now)
        assert desk.ledger.usage("acme", "large", now) == RateLimits(2, 37, 2, 37)


# --- cancellation ---------------------------------------------------------------------------------


async def test_to_cancel_while_it_waits_ends_it_at_once() -> None:
    async with open_desk(fails(503), OK, holds=True) as desk:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(desk.send())
            await desk.clock.asleep.wait()
            sending.cancel()
        assert sending.cancelled()
        assert len(desk.upstream.seen) == 1


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(stall(), id="before the head"),
        pytest.param(stall(b"HTTP/1.1 200"), id="in the head"),
        pytest.param(stall(head(503, framing="100")), id="in the body of an error"),
    ],
)
async def test_to_cancel_while_it_sends_closes_the_upstream(step: Play) -> None:
    async with open_desk(step, OK) as desk:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(desk.send())
            await desk.upstream.arrived(1)
            for _ in range(10):
                await asyncio.sleep(0)
            sending.cancel()
        assert sending.cancelled()
        await desk.upstream.gone(0)
        assert len(desk.upstream.seen) == 1
