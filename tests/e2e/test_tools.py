"""The example of a tool file, and what the guide to tools tells people to write."""

import asyncio
import re
import tomllib
from pathlib import Path
from textwrap import dedent

import msgspec

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Toolbox, ToolOutcome
from sightline.agent.tools.hooks import hooks_in
from sightline.agent.tools.opening import ToolContext, open_toolsets
from sightline.model.parts import Image, Text
from sightline.settings import Toolset
from tests.agent.tools.processes import environment

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide" / "tools.md").read_text()


def blocks(language: str) -> list[str]:
    return [dedent(found) for found in re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)]


def used(file: Path, *calls: tuple[str, dict[str, object]]) -> list[ToolOutcome]:
    async def story() -> list[ToolOutcome]:
        where = ToolContext(file.parent, file.parent, environment())
        tools = await open_toolsets({"kit": Toolset(python=str(file))}, where)
        try:
            Toolbox(tools.definitions).check()
            made = [RunnableCall(key="1.1", id="a", name=name, arguments=arguments) for name, arguments in calls]
            return [await tools.use(call, lambda words: None) for call in made]
        finally:
            await tools.close()

    return asyncio.run(story())


def test_the_example_does_what_it_says() -> None:
    length = {"amount": 2.0, "unit": "km"}
    converted, days, backwards, waited, chart = used(
        ROOT / "examples" / "tools.py",
        ("convert", {"length": length, "to": "m"}),
        ("days_between", {"first": "2026-02-01", "last": "2026-03-01"}),
        ("days_between", {"first": "2026-03-01", "last": "2026-02-01"}),
        ("count_down", {"seconds": 0}),
        ("bar_chart", {"values": {"a": 1.0, "b": 3.0}}),
    )
    assert converted.structured == {"amount": 2000.0, "unit": "m"}
    assert days.parts == (Text("28"),)
    assert backwards.is_error
    assert "2026-02-01 is before 2026-03-01 (tools.py, line " in str(backwards.parts[0])
    assert waited.parts == (Text("The time is over."),)
    assert [type(part) for part in chart.parts] == [Text, Image]


def test_the_guide_s_function_is_a_tool(tmp_path: Path) -> None:
    file = tmp_path / "kit.py"
    file.write_text(blocks("python")[0])
    (days,) = used(file, ("days_between", {"first": "2026-02-01", "last": "2026-02-03"}))
    assert days.parts == (Text("2"),)


def test_the_guide_s_tables_and_hooks_can_be_read() -> None:
    for text in blocks("toml"):
        for name, table in msgspec.convert(tomllib.loads(text)["tools"], dict[str, Toolset]).items():
            table.check(name)
    hooks = next(text for text in blocks("json") if "before_tool" in text)
    assert len(hooks_in(hooks.encode(), "hooks.json")) == 3
