"""What the logs of every store do, told as stories. A test class inherits them, and gives a fixture `opening`."""

import asyncio
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from sightline.errors import Code, Fault
from sightline.store.store import Line, Log, Store
from tests.store.conformance import Opening, opened
from tests.store.traffic import NOON, chat_body, whole

ROOT = Path(__file__).parents[2]


def writer(*arguments: str) -> subprocess.Popen[str]:
    """A process that adds lines."""
    command = [sys.executable, "-m", "tests.store.logging_child", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


class LogbookConformance:
    """Inherit it, and give the fixtures `opening` and `place`: the arguments that open the same store in a child."""

    async def test_lines_come_back_as_they_were_added(self, opening: Opening) -> None:
        async with opened(opening) as store:
            assert await store.logbook.lines("chat") == []
            await store.logbook.append("chat", 0, [b'{"a":1}', "grüße 🚀 \0".encode()], NOON)
            await store.logbook.append("chat", 2, [b"", b"\xff"], NOON + 1)
        async with opened(opening) as store:
            lines = [
                Line(1, NOON, b'{"a":1}'),
                Line(2, NOON, "grüße 🚀 \0".encode()),
                Line(3, NOON + 1, b""),
                Line(4, NOON + 1, b"\xff"),
            ]
            assert await store.logbook.lines("chat") == lines
            assert await store.logbook.lines("chat", after=2) == lines[2:]
            assert await store.logbook.lines("chat", after=9) == []
            assert await store.logbook.logs() == [Log("chat", 4, NOON, NOON + 1)]

    @pytest.mark.parametrize("after", [0, 1, 3])
    async def test_append_at_an_outdated_position_is_rejected(self, opening: Opening, after: int) -> None:
        async with opened(opening) as store:
            await store.logbook.append("run:ü", 0, [b"1", b"2"], NOON)
            with pytest.raises(Fault, match="'run:ü' was changed by another process") as caught:
                await store.logbook.append("run:ü", after, [b"3"], NOON + 1)
            assert (caught.value.code, caught.value.status) == (Code.USAGE, 409)
            assert caught.value.hint
            assert [line.data for line in await store.logbook.lines("run:ü")] == [b"1", b"2"]
            assert await store.logbook.logs() == [Log("run:ü", 2, NOON, NOON)]

    async def test_a_log_that_is_not_there_has_no_lines_to_follow(self, opening: Opening) -> None:
        async with opened(opening) as store:
            with pytest.raises(Fault, match="changed by another"):
                await store.logbook.append("chat", 3, [b"4"], NOON)
            assert await store.logbook.logs() == []

    async def test_nothing_added_is_nothing_done(self, opening: Opening) -> None:
        async with opened(opening) as store:
            await store.logbook.append("chat", 0, [], NOON)
            assert await store.logbook.logs() == []

    async def test_logs_are_found_by_how_their_names_begin_the_latest_first(self, opening: Opening) -> None:
        async with opened(opening) as store:
            for number, name in enumerate(["run:1", "run:2", "run%", "chat", "run:3", "Run:4"]):
                await store.logbook.append(name, 0, [b"x"], NOON + number)
            await store.logbook.append("run:1", 1, [b"y"], NOON + 20)
            assert [log.name for log in await store.logbook.logs("run:")] == ["run:1", "run:3", "run:2"]
            assert [log.name for log in await store.logbook.logs("run%")] == ["run%"]
            assert len(await store.logbook.logs()) == 6

    async def test_a_forgotten_log_can_begin_again(self, opening: Opening) -> None:
        async with opened(opening) as store:
            await store.logbook.append("chat", 0, [b"old", b"older"], NOON)
            await store.logbook.append("run:1", 0, [b"stays"], NOON)
            await store.logbook.forget("chat")
            await store.logbook.forget("nothing")
            assert await store.logbook.lines("chat") == []
            await store.logbook.append("chat", 0, [b"new"], NOON + 1)
            assert await store.logbook.lines("chat") == [Line(1, NOON + 1, b"new")]
            assert [line.data for line in await store.logbook.lines("run:1")] == [b"stays"]

    async def test_a_line_of_fifty_megabytes_is_a_line(self, opening: Opening) -> None:
        data = Random(5).randbytes(50_000_000)

        async with opened(opening) as store:
            await store.logbook.append("run:1", 0, [b"small", data, b"after"], NOON)
            small, large, last = await store.logbook.lines("run:1")
            assert (small.data, last.data) == (b"small", b"after")
            assert large.data == data

    async def test_a_hundred_thousand_lines_are_added_and_read_at_once(self, opening: Opening) -> None:
        lines = [f'{{"n":{number}}}'.encode() for number in range(100_000)]

        async with opened(opening) as store:
            await store.logbook.append("chat", 0, lines, NOON)
            await store.logbook.append("chat", len(lines), [b"one more"], NOON)
            assert [line.data for line in await store.logbook.lines("chat")] == [*lines, b"one more"]
            assert [line.n for line in await store.logbook.lines("chat", after=99_999)] == [100_000, 100_001]

    async def test_retention_leaves_logs_alone_and_does_not_count_them(self, opening: Opening) -> None:
        async with opened(opening) as store:
            store.record(whole("x_1", chat_body("hi"), "yes"))
            await store.settle()
            size = (await store.prune()).bytes_left
            await store.logbook.append("chat", 0, [Random(3).randbytes(3_000_000)], NOON)
            assert (await store.prune(larger_than=size + 100_000)).exchanges == 0
            assert (await store.prune(older_than=NOON + 9, larger_than=0)).exchanges == 1
            assert [len(line.data) for line in await store.logbook.lines("chat")] == [3_000_000]

    async def test_only_one_of_concurrent_appends_succeeds(self, opening: Opening) -> None:
        async def add(store: Store, number: int) -> bool:
            try:
                await store.logbook.append("chat", 0, [b"%d" % number], NOON)
            except Fault:
                return False
            return True

        async with opened(opening) as store:
            done = await asyncio.gather(*(add(store, number) for number in range(20)))
            assert sum(done) == 1
            assert await store.logbook.lines("chat") == [Line(1, NOON, b"%d" % done.index(True))]

    async def test_two_processes_on_one_log_lose_and_double_nothing(self, opening: Opening, place: list[str]) -> None:
        async with opened(opening):
            pass  # both find the tables there
        children = [writer("100", name, *place) for name in ("one", "two")]
        said: list[str] = []
        for child in children:
            with child:
                assert child.stdout is not None
                said += child.stdout.read().split()
            assert child.returncode == 0
        async with opened(opening) as store:
            lines = await store.logbook.lines("shared")
            assert [line.n for line in lines] == list(range(1, 201))
            for name in ("one", "two"):
                own = [line.data.decode() for line in lines if line.data.startswith(name.encode())]
                assert own == [f"{name}-{number}" for number in range(100)]
            # Each says where its lines came to stand, and no two of them the same.
            assert sorted(int(word) for word in said) == list(range(1, 201))

    async def test_lines_are_rewritten_in_their_places(self, opening: Opening) -> None:
        async with opened(opening) as store:
            await store.logbook.append("one", 0, [b"a", b"secret", b"c"], NOON)
            await store.logbook.rewrite("one", {2: b"b"})
            await store.logbook.rewrite("one", {})
            await store.logbook.rewrite("nothing", {1: b"x"})
            assert [(line.n, line.at, line.data) for line in await store.logbook.lines("one")] == [
                (1, NOON, b"a"),
                (2, NOON, b"b"),
                (3, NOON, b"c"),
            ]
            await store.logbook.append("one", 3, [b"d"], NOON)

    @pytest.mark.parametrize("seed", range(3))
    async def test_a_process_that_is_killed_loses_nothing_that_was_added(
        self, opening: Opening, place: list[str], seed: int
    ) -> None:
        with writer("1000000", "victim", *place) as child:
            assert child.stdout is not None
            heard = "".join(child.stdout.readline() for _ in range(Random(seed).randrange(1, 150)))
            child.kill()
            last = int((heard + child.stdout.read()).split("\n")[-2])

        async with opened(opening) as store:
            lines = await store.logbook.lines("shared")
            # One more may have been added before the process could say so.
            assert len(lines) >= last
            assert [line.data.decode() for line in lines] == [f"victim-{number}" for number in range(len(lines))]
            await store.logbook.append("shared", len(lines), [b"and on"], NOON)
