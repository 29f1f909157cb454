import asyncio
import contextvars
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest

from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.steps import RunnableCall
from sightline.agent.tools.callables import Callables
from sightline.errors import Fault
from sightline.model.parts import Text


@dataclass
class Point:
    x: int
    y: int


def length(point: Point) -> float:
    """How far a point is from the origin."""
    return (point.x**2 + point.y**2) ** 0.5


async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


def broken() -> None:
    raise LookupError("not there")


def use(name: str, function: object, timeout: float = 60.0, **arguments: object) -> ToolOutcome:
    tools = Callables([function], timeout=timeout)  # type: ignore[list-item]
    return asyncio.run(tools.use(RunnableCall(key="1.1", id="a", name=name, arguments=arguments), print))  # type: ignore[arg-type]


def text(outcome: ToolOutcome) -> str:
    return "".join(part.text for part in outcome.parts if isinstance(part, Text))


def test_functions_of_both_kinds_are_called_with_what_their_hints_say() -> None:
    assert text(use("length", length, point={"x": 3, "y": 4})) == "5.0"
    assert text(use("slow", slow, seconds=0)) == "done"


def test_they_see_the_context_of_the_caller() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    who.set("me")

    def whoami() -> str:
        return who.get()

    assert text(use("whoami", whoami)) == "me"


def test_a_function_that_returns_an_awaitable_is_awaited() -> None:
    def later(n: int):
        return slow(0)

    assert text(use("later", later, n=1)) == "done"


@pytest.mark.parametrize("kind", [SystemExit, StopIteration, KeyboardInterrupt])
def test_no_exception_gets_out(kind: type[BaseException]) -> None:
    def leave() -> None:
        raise kind("enough")

    outcome = use("leave", leave)
    assert outcome.is_error
    assert f"{kind.__name__}: enough" in text(outcome)


def test_what_is_raised_is_told_with_its_place() -> None:
    outcome = use("broken", broken)
    assert outcome.is_error
    assert text(outcome).startswith(f"LookupError: not there ({Path(__file__).name}, line ")


def test_a_timeout_of_the_tool_s_own_is_no_timeout_of_ours() -> None:
    def impatient() -> None:
        raise TimeoutError("the server is slow")

    assert text(use("impatient", impatient)).startswith("TimeoutError: the server is slow")


def test_what_takes_too_long_is_not_waited_for() -> None:
    assert text(use("slow", slow, timeout=0.01, seconds=600)) == "slow was stopped: it took longer than 0.01 s."
    released = Event()

    def stuck() -> None:
        released.wait()

    assert use("stuck", stuck, timeout=0.01).is_error
    released.set()


def test_two_of_one_name_and_one_without_are_refused() -> None:
    with pytest.raises(Fault, match="two tools are named 'length'"):
        Callables([length, length])
    with pytest.raises(Fault, match="cannot be a tool"):
        Callables([lambda: None])


def test_those_that_may_run_beside_others_are_marked() -> None:
    tools = Callables([length, slow], parallel=[slow])
    assert [each.is_parallel for each in tools.definitions] == [False, True]
    asyncio.run(tools.close())


def test_one_that_is_not_there() -> None:
    assert "length" in text(use("lenght", length))
