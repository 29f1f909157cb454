import asyncio

from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.tools.mcp.connection import LONGEST, Reporting, words


def test_progress_is_words_and_numbers() -> None:
    assert words(3, 10, "reading") == "reading (3 of 10)"
    assert words(3, None, None) == "3"
    assert words(0.5, 0, "") == "0.5"


@given(st.floats(), st.none() | st.floats(), st.none() | st.text())
def test_progress_is_one_short_line_that_moves_no_cursor(progress: float, total: float | None, message: str) -> None:
    line = words(progress, total, message)
    assert line.isprintable()
    assert len(line) < LONGEST + 60


def test_a_flood_is_told_once_and_the_end_is_the_end() -> None:
    told: list[str] = []

    async def story() -> None:
        report = Reporting(told.append)
        for number in range(1000):
            await report.report(number, None, None)
        report.end()
        await asyncio.sleep(0)
        await report.report(1000, None, None)

    asyncio.run(story())
    assert told[0] == "0"
    assert len(told) < 1000
    assert "1000" not in told
