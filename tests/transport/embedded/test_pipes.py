import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sightline.errors import Code
from sightline.transport.embedded import process as pipes
from sightline.transport.embedded.causes import ChildStarted
from sightline.transport.embedded.process import COMPLAINTS_KEPT, ChildPipes
from tests.transport.embedded.stand_in import until_dead


@asynccontextmanager
async def child(script: str) -> AsyncIterator[ChildPipes]:
    _, protocol = await asyncio.get_running_loop().subprocess_exec(ChildPipes, "/bin/sh", "-c", script, env={})
    try:
        yield protocol
    finally:
        await protocol.end()


async def told_by(script: str) -> ChildPipes:
    async with child(script) as heard:
        await heard.settled.wait()
        await heard.ended.wait()
    return heard


async def test_a_child_says_where_it_listens_and_goes_on() -> None:
    async with child("""echo '{"type":"started","address":"http://127.0.0.1:7"}'; read line""") as heard:
        await heard.settled.wait()
        assert heard.answer == ChildStarted("http://127.0.0.1:7")
        assert heard.address == "http://127.0.0.1:7"
        assert heard.is_alive
    assert not heard.is_alive
    assert heard.exit_code == 1


async def test_an_answer_may_come_in_pieces_and_what_follows_it_is_not_read() -> None:
    pieces = r"""printf '{"type":"started",'; printf '"address":"http://127.0.0.1:7"}\n'; echo and more"""
    assert (await told_by(pieces)).address == "http://127.0.0.1:7"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("echo hello", id="no JSON"),
        pytest.param("""echo '{"type":"arrived"}'""", id="no answer"),
        pytest.param(r"printf '\377\376\n'", id="no text"),
        pytest.param("head -c 70000 /dev/zero", id="no end"),
    ],
)
async def test_what_is_not_understood_is_a_failure(script: str) -> None:
    heard = await told_by(script)
    fault = await heard.fault()
    assert heard.address == ""
    assert fault.code is Code.LOCAL_UNAVAILABLE
    assert "what it said is not understood" in fault.message


async def test_of_its_complaints_the_last_ones_are_kept() -> None:
    heard = await told_by("head -c 100000 /dev/zero >&2; echo >&2; echo 'MemoryError: no room' >&2; echo >&2; exit 3")
    assert len(heard._complaints) == COMPLAINTS_KEPT
    assert heard.end_in_words() == ("crashed", "exit code 3; MemoryError: no room")


async def test_a_child_that_says_nothing_is_known_by_its_end() -> None:
    assert (await told_by("kill -ILL $$")).end_in_words() == ("no_avx2", "signal 4")
    assert (await told_by("kill -KILL $$")).end_in_words() == ("out_of_memory", "signal 9")


async def test_a_child_is_not_waited_for_once_it_was_given_up() -> None:
    async with child("read line") as heard:
        heard.give_up("timeout")
        await heard.settled.wait()
        await heard.ended.wait()
        heard.kill()
        assert "did not start in time" in (await heard.fault()).message


async def test_a_child_that_has_answered_is_not_given_up() -> None:
    async with child("""echo '{"type":"started","address":"http://127.0.0.1:7"}'; read line""") as heard:
        await heard.settled.wait()
        heard.give_up("timeout")
        assert heard.is_alive


@pytest.mark.parametrize(
    ("deafness", "signal"),
    [
        pytest.param("", 15, id="to the end of its input"),
        pytest.param("trap '' TERM;", 9, id="to a request to end as well"),
    ],
)
async def test_a_deaf_child_is_ended_all_the_same(monkeypatch: pytest.MonkeyPatch, deafness: str, signal: int) -> None:
    monkeypatch.setattr(pipes, "_PATIENCE", 0.05)
    script = f"""{deafness} echo '{{"type":"failed","cause":"crashed"}}'; while :; do read -r line; done"""
    async with child(script) as heard:
        await heard.settled.wait()
    assert heard.exit_code == -signal


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("""echo '{"type":"started","address":"http://127.0.0.1:7"}'; read line""", id="an answer"),
        pytest.param("exit 3", id="an end"),
    ],
)
async def test_a_child_that_has_settled_is_timed_no_longer(script: str) -> None:
    async with child(script) as heard:
        heard.limit(600)
        await heard.settled.wait()
        heard.limit(600)
        assert heard._deadline is None or heard._deadline.cancelled()


async def test_a_child_that_does_not_settle_in_time_is_given_up() -> None:
    async with child("read line") as heard:
        heard.limit(0)
        await heard.ended.wait()
        assert "did not start in time" in (await heard.fault()).message


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="this system does not tell of a child's end without a wait")
async def test_dead_child_is_detected_before_its_exit_is_reported() -> None:
    async with child("""echo '{"type":"started","address":"http://127.0.0.1:7"}'; read line""") as heard:
        await heard.settled.wait()
        pid = heard._transport.get_pid()
        os.kill(pid, signal.SIGKILL)
        until_dead(pid)
        assert heard.exit_code is None
        assert not heard.is_alive
