"""Law 8, one visible retry budget: before the first byte only, counted in one place, told, and 0 means 0."""

import asyncio
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Fault
from sightline.model.exchange import AttemptStarted
from sightline.tokens.ledger import Ledger
from sightline.transport.http.client import HttpClient
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies, Timeouts
from sightline.transport.sender import AcceptedResponse, Outgoing, RefusedResponse, Sender
from sightline.wire.call import HttpRequest
from tests.fake_clock import FakeClock
from tests.upstream import Play, Upstream, answer, chunk, cut, head, pieces, says

BODY = b'{ "model": "large" }'


def fails(status: int, code: str = "", **headers: str) -> Play:
    told = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return says({"error": {"message": "no", "code": code or None}}, status, told)


AGAIN: Mapping[str, Play] = {
    **{str(status): fails(status) for status in (408, 429, 500, 502, 503, 504, 529)},
    "429, wait 3": fails(429, retry_after="3"),
    "503, wait 10": fails(503, retry_after="10"),
    "429, wait 1 by its limits": fails(429, x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="1s"),
    "502, a page": answer(502, b"<html><title>Bad Gateway</title></html>"),
    "503, a body that breaks off": cut(head(503, framing="99"), b"{", how="eof"),
    "reset": cut(),
    "eof": cut(how="eof"),
}
"""What is tried again while there is something left of the budget."""

ENOUGH: Mapping[str, Play] = {
    "ok": says({}),
    "ok, then cut": cut(head(200), chunk(b"data: 1"), how="eof"),
    "cut in the head": cut(b"HTTP/1.1 2", how="eof"),
    "no http": pieces(b"220 mail.example ESMTP\r\n\r\n", then="eof"),
    "redirect": answer(307),
    **{str(status): fails(status) for status in (400, 401, 402, 403, 404, 409, 413, 422)},
    "quota": fails(429, "insufficient_quota"),
    "overflow": fails(400, "context_length_exceeded"),
    "policy": fails(400, "content_filter"),
    "429, wait too long": fails(429, retry_after="11"),
}
"""What is the last word, whatever is left."""

OUTCOMES = {**AGAIN, **ENOUGH}
SCRIPTS = st.lists(st.sampled_from(sorted(OUTCOMES)), min_size=1, max_size=6)


async def sent(script: list[str], retries: int) -> tuple[Upstream, FakeClock, list[AttemptStarted]]:
    clock, attempts = FakeClock(), list[AttemptStarted]()
    steps = [OUTCOMES[name] for name in script]
    trust, proxies = Trust(environment={}), Proxies.of({})
    async with Upstream(steps) as upstream, HttpClient(trust=trust, proxies=proxies) as client:
        request = HttpRequest("POST", upstream.url, (), BODY)
        outgoing = Outgoing(request, "acme", "large", "openai-chat", stream=True, retries=retries, timeouts=Timeouts())
        try:
            found = await Sender(client, clock, lambda: 0.5, Ledger()).send(outgoing, attempts.append)
        except Fault:
            pass
        else:
            if isinstance(found, AcceptedResponse):
                try:
                    await found.response.read()
                except Fault:
                    await found.response.close()
            else:
                assert isinstance(found, RefusedResponse)
    return upstream, clock, attempts


@given(SCRIPTS, st.integers(0, 5))
def test_provider_receives_the_recorded_attempts_within_the_retry_budget(script: list[str], retries: int) -> None:
    upstream, clock, attempts = asyncio.run(sent(script, retries))
    played = [script[min(number, len(script) - 1)] for number in range(retries + 1)]
    expected = next((number for number, name in enumerate(played, 1) if name in ENOUGH), retries + 1)
    assert len(upstream.seen) == len(attempts) == expected <= 1 + retries
    assert {seen.body for seen in upstream.seen} == {BODY}
    assert [attempt.number for attempt in attempts] == list(range(1, expected + 1))
    assert [bool(attempt.reason) for attempt in attempts] == [False] + [True] * (expected - 1)
    assert [attempt.waited for attempt in attempts[1:]] == clock.waits
    assert all(0 < wait <= 10 for wait in clock.waits)
