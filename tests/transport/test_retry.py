import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import RETRYABLE, Code, Fault
from sightline.transport.http import faults
from sightline.transport.http.client import probe
from sightline.transport.retry import STATUSES, format_duration, is_worth_another, next_wait
from sightline.wire.call import HttpRequest
from tests.shared_servers import free_port
from tests.transport.http.asking import client
from tests.upstream import Play, Upstream, answer, cut, says

OVERLOADED = Fault(Code.OVERLOADED, "busy", status=503)


def middle() -> float:
    return 0.5


@pytest.mark.parametrize("status", [None, 200, 302, 400, 401, 403, 404, 409, 413, 422, *sorted(STATUSES), 520])
def test_an_answer_is_followed_by_another_attempt_by_its_status_and_its_class(status: int | None) -> None:
    again = {code for code in Code if is_worth_another(Fault(code, "no", status=status))}
    assert again == (RETRYABLE if status in {408, 429, 500, 502, 503, 504, 529} else set())


@pytest.mark.parametrize(
    ("fault", "again"),
    [
        (faults.no_answer("acme", clean=True), True),
        (faults.network("tls", "self-signed", "", lasting=True), False),
        (faults.truncation("acme"), False),
        (Fault(Code.INVALID_REQUEST, "a header has a line break"), False),
        (Fault(Code.NETWORK, "a gateway's own trouble", status=400, details={"kind": "reset"}), False),
    ],
)
def test_no_answer_is_followed_by_another_attempt_before_the_first_byte_only(fault: Fault, again: bool) -> None:
    assert (next_wait(fault, 1, 10.0, middle) is not None) == again


def test_the_wait_doubles() -> None:
    assert [next_wait(OVERLOADED, n, 10.0, middle) for n in range(1, 8)] == pytest.approx(
        [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0]
    )


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True), st.floats(0.1, 100))
def test_jitter_is_a_tenth_and_the_longest_wait_is_kept(failed: int, draw: float, longest: float) -> None:
    wait = next_wait(OVERLOADED, failed, longest, lambda: draw)
    plain = 0.2 * 2 ** min(failed - 1, 32)
    assert wait is not None
    assert min(longest, plain * 0.9) <= wait <= min(longest, plain * 1.1) + 1e-9


@given(st.floats(0.001, 1000), st.floats(0, 1, exclude_max=True))
def test_what_the_provider_asks_for_is_waited_exactly_or_not_at_all(asked: float, draw: float) -> None:
    fault = Fault(Code.RATE_LIMITED, "slow down", status=429, retry_after=asked)
    assert next_wait(fault, 1, 10.0, lambda: draw) == (asked if asked <= 10 else None)


def test_to_ask_for_no_wait_is_to_ask_for_nothing() -> None:
    fault = Fault(Code.RATE_LIMITED, "slow down", status=429, retry_after=0.0)
    assert next_wait(fault, 1, 10.0, middle) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.25, "0.25 s"),
        (11.054, "11.1 s"),
        (59, "59 s"),
        (60, "1 min"),
        (125, "2 min 5 s"),
        (3600, "1 h"),
        (86_400 + 120, "24 h 2 min"),
    ],
)
def test_times_for_a_person(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


async def asked(step: Play | None) -> tuple[str, str]:
    async with Upstream([step or cut()]) as server, client() as http:
        url = server.url if step is not None else f"http://127.0.0.1:{free_port()}"
        why = await probe(http, HttpRequest("GET", f"{url}/v1/models", (), b""))
        return why, url.removeprefix("http://")


@pytest.mark.parametrize("step", [says({"data": []}), says({"error": {}}, 401)])
async def test_what_lists_its_models_or_wants_a_key_answers(step: Play) -> None:
    assert (await asked(step))[0] == ""


async def test_another_server_at_the_same_place_is_none_of_ours() -> None:
    why, place = await asked(answer(404, b"<html>"))
    assert why == f"What listens at {place} has no list of models (status 404)."


async def test_unreachable_provider_is_reported() -> None:
    why, place = await asked(None)
    assert why == f"Not running: nothing listens at {place}."
    why, place = await asked(cut(how="eof"))
    assert why.startswith(f"{place} does not answer: ")
