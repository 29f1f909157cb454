import asyncio
import json
import sys
from pathlib import Path

import pytest

from sightline.agent.core.approval import ApprovalRule
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome
from sightline.agent.tools.opening import OpenToolsets, ToolContext, open_toolsets
from sightline.agent.tools.tools import Callables, CombinedTools, Tools, unknown
from sightline.errors import Code, Fault
from sightline.model.parts import Text
from sightline.settings import Toolset
from tests.agent.tools.processes import environment, is_gone

KIT = '''
import os

def environment(name: str) -> str:
    """A variable, and the folder."""
    return f"{os.environ.get(name)} {os.getcwd()}"

def pid() -> int:
    return os.getpid()
'''


def where(folder: Path) -> ToolContext:
    secrets = {"ACME_API_KEY": "sk-acme", "WEATHER_KEY": "w"}
    (folder / "project").mkdir(exist_ok=True)
    return ToolContext(folder, folder / "project", environment() | {"HOME": str(folder)} | secrets, {"ACME_API_KEY"})


async def use(tools: OpenToolsets, tool: str, **arguments: object) -> ToolOutcome:
    call = RunnableCall(key="1.1", id="a", name=tool, arguments=arguments)
    return await tools.use(call, lambda words: None)


def text(outcome: ToolOutcome) -> str:
    return "".join(part.text for part in outcome.parts if isinstance(part, Text))


async def test_toolsets_are_opened_together(tmp_path: Path) -> None:
    (tmp_path / "kit.py").write_text(KIT)
    toolsets = {
        "kit": Toolset(python="kit.py", parallel=("p*",), allow=("pi?",)),
        "files": Toolset(folder="~/project", builtin=("read_file", "write_file"), allow=("read_*",)),
    }

    tools = await open_toolsets(toolsets, where(tmp_path))
    try:
        shown = {each.name: each.is_parallel for each in tools.definitions}
        assert shown == {"environment": False, "pid": True, "read_file": True, "write_file": False}
        assert tools.rules == (ApprovalRule("pid", "allow"), ApprovalRule("read_file", "allow"))
        assert tools.notes == ()
        assert tools.hooks is None
        assert not (await use(tools, "write_file", path="a.txt", content="x")).is_error
        assert (tmp_path / "project" / "a.txt").read_text() == "x"
    finally:
        await tools.close()


async def test_a_file_s_functions_run_in_the_folder_and_without_the_providers_keys(tmp_path: Path) -> None:
    (tmp_path / "kit.py").write_text(KIT)

    tools = await open_toolsets({"kit.py": Toolset(python="kit.py")}, where(tmp_path))
    try:
        assert text(await use(tools, "environment", name="ACME_API_KEY")) == f"None {tmp_path / 'project'}"
        assert text(await use(tools, "environment", name="WEATHER_KEY")) == f"w {tmp_path / 'project'}"
    finally:
        await tools.close()


async def test_hooks_shared_by_several_toolsets_run_once(tmp_path: Path) -> None:
    (tmp_path / "hooks.json").write_text(json.dumps({"before_tool": [{"command": "echo $ACME_API_KEY here"}]}))
    toolsets = {
        name: Toolset(folder=name, builtin=(tool,), hooks="hooks.json")
        for name, tool in (("a", "read_file"), ("b", "list_files"))
    }

    for name in toolsets:
        (tmp_path / name).mkdir()
    tools = await open_toolsets(toolsets, where(tmp_path))
    try:
        verdict = await tools.hooks.ask(
            "before_tool", "r", 1, call=RunnableCall(key="1.1", id="a", name="read_file", arguments={})
        )
        assert verdict.context == "here"
    finally:
        await tools.close()


SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("calc")
@server.tool()
def add(a: int, b: int) -> int:
    return a + b
server.run("stdio")
"""


async def test_servers_are_opened_beside_the_others(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    config = {"mcpServers": {"calc": {"command": sys.executable, "args": [str(tmp_path / "server.py")]}}}
    (tmp_path / "mcp.json").write_text(json.dumps(config))

    tools = await open_toolsets({"calc": Toolset(mcp="mcp.json", allow=("calc__*",))}, where(tmp_path))
    try:
        assert tools.notes == ()
        assert tools.rules == (ApprovalRule("calc__add", "allow"),)
        outcome = await use(tools, "calc__add", a=1, b=2)
        assert "3" in text(outcome) or outcome.structured == {"result": 3}
    finally:
        await tools.close()


def fault_of(toolsets: dict[str, Toolset], folder: Path) -> Fault:
    with pytest.raises(Fault) as caught:
        asyncio.run(open_toolsets(toolsets, where(folder)))
    assert caught.value.code is Code.CONFIG
    assert caught.value.hint
    return caught.value


def test_if_one_cannot_be_opened_those_before_it_are_closed(tmp_path: Path) -> None:
    told = "open('pid', 'w').write(str(__import__('os').getpid()))\n"
    (tmp_path / "kit.py").write_text(told + KIT)
    fault = fault_of({"kit": Toolset(python="kit.py"), "none": Toolset(folder="none")}, tmp_path)
    assert "none: No such file or directory" in fault.message
    assert is_gone(int((tmp_path / "project" / "pid").read_text()))


def test_duplicate_tool_name_is_reported_with_both_locations(tmp_path: Path) -> None:
    (tmp_path / "kit.py").write_text(KIT)
    (tmp_path / "more.py").write_text("def pid() -> int: return 1")
    fault = fault_of({"one": Toolset(python="kit.py"), "two": Toolset(python="more.py")}, tmp_path)
    assert f"'pid': one in one ({tmp_path}/kit.py), one in two ({tmp_path}/more.py)" in fault.message


@pytest.mark.parametrize(
    ("toolset", "words"),
    [
        (Toolset(), "[tools.mine] names none"),
        (Toolset(python="no.py"), "no.py: No such file"),
        (Toolset(folder=".", hooks="no.json"), "no.json: No such file"),
        (Toolset(folder=".", hooks="long.json"), "long.json: too long"),
    ],
)
def test_what_cannot_be_opened_says_why(tmp_path: Path, toolset: Toolset, words: str) -> None:
    (tmp_path / "long.json").write_bytes(b" " * 2_000_000)
    assert words in fault_of({"mine": toolset}, tmp_path).message


def test_paths_are_taken_as_they_are_written(tmp_path: Path) -> None:
    place = where(tmp_path)
    assert place.path("a/b") == tmp_path / "a" / "b"
    assert place.path("~/b") == tmp_path / "b"
    assert place.path("~") == tmp_path
    assert place.path("/abs") == Path("/abs")


def hello(name: str) -> str:
    return f"Hello, {name}."


def goodbye() -> str:
    return "Goodbye."


def tools_use(tools: Tools, tool: str, **arguments: str) -> ToolOutcome:
    return asyncio.run(tools.use(RunnableCall(key="1.1", id="a", name=tool, arguments=dict(arguments)), print))


def test_several_sources_are_one() -> None:
    tools = CombinedTools([Callables([hello]), Callables([goodbye])])
    assert [each.name for each in tools.definitions] == ["hello", "goodbye"]
    assert tools_use(tools, "hello", name="Ada").parts == (Text("Hello, Ada."),)
    assert tools_use(tools, "goodbye").parts == (Text("Goodbye."),)


def test_a_tool_that_none_of_them_has_answers_with_the_nearest() -> None:
    assert tools_use(CombinedTools([Callables([hello])]), "helo") == unknown("helo", Callables([hello]).definitions)
    assert tools_use(CombinedTools([]), "helo").parts == (Text("The tool 'helo' does not exist."),)


def test_all_of_them_are_closed() -> None:
    class Kept(Callables):
        is_closed = False

        async def close(self) -> None:
            self.is_closed = True

    sources = [Kept([hello]), Kept([goodbye])]
    asyncio.run(CombinedTools(sources).close())
    assert all(each.is_closed for each in sources)
