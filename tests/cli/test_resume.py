"""Taking runs up; how they are left is told in tests/e2e/test_runs_at_a_terminal.py."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.agent.core.approval import Policy
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import RunnableCall
from sightline.agent.service.approvers import Judging
from sightline.app.agent_runs import open_runner
from sightline.app.configuration import configuration
from sightline.app.tool_choice import open_tools, parse_tools
from sightline.catalog.choose import choose
from sightline.catalog.compose import Prompt
from sightline.cli.program import main
from sightline.errors import Fault
from sightline.model.json import JsonObject
from sightline.model.message import Message
from sightline.model.parts import Text, ToolCall
from tests.loop_stage import calls, says
from tests.running_stage import plays
from tests.tool_desk import ToolDesk, tool_desk

Captured = pytest.CaptureFixture[str]
ADD = ToolCall("c1", "add", '{"a": 2, "b": 3}')


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolDesk]:
    with tool_desk(tmp_path) as made:
        monkeypatch.chdir(tmp_path)
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


def left(desk: ToolDesk, origin: JsonObject | None = None, policy: Policy | None = None) -> str:
    """A run that was left when its first call was to be approved."""

    async def story() -> str:
        loaded = configuration(None)
        wanted = parse_tools(loaded, tools=["tools.py"])
        tools = await open_tools(loaded, wanted)
        choice = choose(loaded.catalog, "acme/m", has_key=loaded.has_key)
        async with open_runner(loaded, None) as runner:
            name = runner.make_id()

            def judge(_call: RunnableCall) -> bool:
                runner.leave(name)
                return True

            with pytest.raises(Fault, match="was left"):
                await runner.run(
                    Prompt((Message("user", (Text("Add."),)),)),
                    choice,
                    RunPlan(dialect=choice.dialect, policy=policy or Policy()),
                    tools,
                    Judging(judge),
                    session="ask",
                    run=name,
                    origin={"kind": "ask", **wanted.origin} if origin is None else origin,
                )
        await tools.close()
        return name

    desk.upstream.script = [plays(calls(ADD)), plays(says("5"))]
    return asyncio.run(story())


def test_a_run_goes_on_with_its_tools_by_the_beginning_of_its_name(desk: ToolDesk, capsys: Captured) -> None:
    name = left(desk)
    assert desk.traces == []
    assert main(["resume", "--yes", "--json", name[:10]]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["rounds"][-1]["text"] == "5"
    assert f"run {name}: acme/m, 1 rounds so far" in err
    assert (desk.traces, len(desk.upstream.seen)) == (["add 2 3"], 2)
    assert main(["resume", "--yes", name]) == 2
    assert f"error[usage]: the run {name} has ended" in capsys.readouterr().err


def test_where_nobody_can_be_asked_the_run_waits(desk: ToolDesk, capsys: Captured) -> None:
    name = left(desk)
    assert main(["resume", name]) == 2
    assert "nobody is there to approve calls of add, wait" in capsys.readouterr().err
    assert main(["resume", "--yes", "--quiet", name]) == 0
    assert capsys.readouterr() == ("5", "")


def test_a_run_that_nobody_knows(desk: ToolDesk, capsys: Captured) -> None:
    assert main(["resume", "r_nothing"]) == 2
    assert "there is no run 'r_nothing'" in capsys.readouterr().err


def test_a_run_of_a_program_is_taken_up_by_that_program(desk: ToolDesk, capsys: Captured) -> None:
    name = left(desk, origin={"kind": "library"})
    assert main(["resume", "--yes", name]) == 2
    assert "Its tools are functions of the program that began it" in capsys.readouterr().err
