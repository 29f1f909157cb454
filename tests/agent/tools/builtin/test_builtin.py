import asyncio
from pathlib import Path
from threading import Event

import pytest

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Toolbox
from sightline.agent.tools.builtin import builtin
from sightline.agent.tools.builtin.builtin import NAMES, READING, Builtin
from sightline.errors import Code, Fault
from sightline.model.tools import OpaqueTool
from tests.agent.tools.builtin.rooms import refused, text


def opened(folder: Path, *names: str, **how: object) -> Builtin:
    return Builtin(folder, names or READING, environment={}, **how)  # type: ignore[arg-type]


def test_only_what_was_chosen_is_there(tmp_path: Path) -> None:
    tools = opened(tmp_path)
    assert [each.name for each in tools.definitions] == list(READING)
    outcome = asyncio.run(
        tools.use(RunnableCall(key="1", id="a", name="run_command", arguments={"command": "id"}), print)
    )
    assert outcome.is_error
    assert "does not exist" in text(outcome)
    asyncio.run(tools.close())


def test_every_tool_says_what_it_does_and_what_it_takes(tmp_path: Path) -> None:
    tools = opened(tmp_path, *NAMES)
    Toolbox(tools.definitions).check()
    for each in tools.definitions:
        assert each.description
        if each.is_remote:
            continue
        assert each.schema is not None
        properties = each.schema["properties"]
        assert isinstance(properties, dict)
        assert all("description" in value for value in properties.values())  # type: ignore[operator]
    asyncio.run(tools.close())


def test_those_that_only_read_run_beside_each_other(tmp_path: Path) -> None:
    tools = opened(tmp_path, *NAMES)
    assert tuple(each.name for each in tools.definitions if each.is_parallel) == READING
    asyncio.run(tools.close())


def test_a_name_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(Fault) as caught:
        opened(tmp_path, "delete_everything")
    assert caught.value.code is Code.CONFIG
    assert "run_command" in caught.value.hint


def test_faults_and_errors_of_the_system_are_words_for_the_model(tmp_path: Path) -> None:
    assert refused(tmp_path, "read_file", path="../x").startswith("'../x' is outside the folder that may be used. Give")
    tools = opened(tmp_path)
    asyncio.run(tools.close())
    outcome = asyncio.run(tools.use(RunnableCall(key="1", id="a", name="list_files", arguments={}), print))
    assert text(outcome) == "list_files failed: Bad file descriptor"
    assert str(tools) == f"the built-in tools of {tmp_path}"


def test_a_folder_that_keeps_nobody_waiting_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Event()
    monkeypatch.setattr(builtin, "_GRACE", 0.0)

    def list_files(self: object) -> None:
        stuck.wait()

    monkeypatch.setattr(builtin.ListFilesTool, "list_files", list_files)
    tools = opened(tmp_path, "list_files", timeout=0.01)
    outcome = asyncio.run(tools.use(RunnableCall(key="1", id="a", name="list_files", arguments={}), print))
    stuck.set()
    assert text(outcome) == "list_files was stopped: it took longer than 0.01 s."
    asyncio.run(tools.close())


def test_what_the_model_s_api_has_by_itself_is_offered_so(tmp_path: Path) -> None:
    tools = opened(tmp_path, "local_shell", "web_search")
    assert Toolbox(tools.definitions).tools_for() == (
        OpaqueTool("openai-responses", {"type": "local_shell"}),
        OpaqueTool("openai-responses", {"type": "web_search"}),
    )
    outcome = asyncio.run(tools.use(RunnableCall(key="1", id="a", name="web_search", arguments={}), print))
    assert "does not exist" in text(outcome)
    asyncio.run(tools.close())
