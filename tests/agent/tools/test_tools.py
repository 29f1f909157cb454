import asyncio

import pytest

from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.steps import RunnableCall
from sightline.agent.tools.callables import Callables
from sightline.agent.tools.tools import Tools, together, unknown
from sightline.errors import Code, Fault
from sightline.model.parts import Text


def hello(name: str) -> str:
    return f"Hello, {name}."


def goodbye() -> str:
    return "Goodbye."


def use(tools: Tools, tool: str, **arguments: str) -> ToolOutcome:
    return asyncio.run(tools.use(RunnableCall(key="1.1", id="a", name=tool, arguments=dict(arguments)), print))


def test_several_sources_are_one() -> None:
    tools = together([Callables([hello]), Callables([goodbye])])
    assert [each.name for each in tools.definitions] == ["hello", "goodbye"]
    assert use(tools, "hello", name="Ada").parts == (Text("Hello, Ada."),)
    assert use(tools, "goodbye").parts == (Text("Goodbye."),)


def test_a_name_that_two_of_them_have_is_refused_and_both_are_named() -> None:
    with pytest.raises(Fault) as caught:
        together([Callables([hello]), Callables([goodbye, hello])])
    assert caught.value.code is Code.CONFIG
    assert "two tools are named 'hello': one in the functions of this program" in caught.value.message


def test_a_tool_that_none_of_them_has_answers_with_the_nearest() -> None:
    assert use(together([Callables([hello])]), "helo") == unknown("helo", Callables([hello]).definitions)
    assert use(together([]), "helo").parts == (Text("The tool 'helo' does not exist."),)


def test_all_of_them_are_closed() -> None:
    class Kept(Callables):
        is_closed = False

        async def close(self) -> None:
            self.is_closed = True

    sources = [Kept([hello]), Kept([goodbye])]
    asyncio.run(together(sources).close())
    assert all(each.is_closed for each in sources)
