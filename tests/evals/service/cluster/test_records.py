import asyncio

import msgspec
import pytest

from sightline.errors import Fault
from sightline.evals.service.cluster.host_services import FarLogbook, FarSharing, HostLine, recording
from sightline.evals.service.cluster.messages import (
    Append,
    Find,
    FindAnswer,
    HomeAnswer,
    HostQuestion,
    Keep,
    ListLogs,
    ReadLines,
    RecordEntries,
    pack,
)
from sightline.store.entries import BodyEntry
from sightline.store.logbook import Line, Log
from tests.cluster_stage import heard
from tests.store.traffic import prices


def test_what_belongs_on_record_goes_home() -> None:
    async def story() -> None:
        line = HostLine()
        recording(line, [BodyEntry("ab", b"body")])
        assert await heard(line) == [RecordEntries((BodyEntry("ab", b"body"),))]

    asyncio.run(story())


def test_logs_are_kept_at_home() -> None:
    async def story() -> None:
        line, loop = HostLine(), asyncio.get_running_loop()
        logbook = FarLogbook(line)
        tasks = [
            loop.create_task(logbook.append("run:r_1", 0, [b"one"], 1.0)),
            loop.create_task(logbook.lines("run:r_1", 2)),
            loop.create_task(logbook.logs("run:")),
        ]
        await asyncio.sleep(0)
        questions = [Append("run:r_1", 0, (b"one",), 1.0), ReadLines("run:r_1", 2), ListLogs("run:")]
        assert await heard(line) == [HostQuestion(n, question) for n, question in enumerate(questions, 1)]
        lines, logs = (Line(3, 1.0, b"x"),), (Log("run:r_1", 3, 1.0, 2.0),)
        for n, value in enumerate((True, lines, logs), 1):
            line.resolve(HomeAnswer(n, msgspec.Raw(pack(value))))
        assert await asyncio.gather(*tasks) == [None, list(lines), list(logs)]
        with pytest.raises(Fault, match="does not forget"):
            await logbook.forget("run:r_1")

    asyncio.run(story())


def test_earlier_answers_are_looked_for_at_home_where_they_are_wanted() -> None:
    async def story() -> None:
        line = HostLine()
        assert await FarSharing(line, prices, is_cached=False).answers("acme") is None
        answers = await FarSharing(line, prices, is_cached=True).answers("acme")
        assert answers is not None
        looking = asyncio.get_running_loop().create_task(answers.find("k", "ab"))
        await asyncio.sleep(0)
        assert await heard(line) == [HostQuestion(1, Find("acme", "k"))]
        line.resolve(HomeAnswer(1, msgspec.Raw(pack(FindAnswer()))))
        assert await looking is None
        answers.keep("k", "x_1")
        await answers.flush()
        assert await heard(line) == [Keep("acme", "k", "x_1")]

    asyncio.run(story())
