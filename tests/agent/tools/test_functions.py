import asyncio
import base64
import contextvars
import datetime
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Annotated, Literal

import msgspec
import pytest

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome, text_outcome, words_of
from sightline.agent.tools.tools import Callables, convert_arguments, failure_of, last_line, outcome_of, part_of
from sightline.errors import Fault
from sightline.model.parts import Audio, Document, Image, Inline, Text


def plan(
    day: datetime.date,
    tags: set[str],
    how: Annotated[Literal["a", "b"], "the way"] = "a",
    loose=None,
    **more: int,
) -> None: ...


def test_what_json_spells_becomes_what_the_hints_say() -> None:
    given = {"day": "2026-02-03", "tags": ["x", "x"], "how": "b", "loose": {"any": 1}, "extra": 7}
    assert convert_arguments(plan, given) == {
        "day": datetime.date(2026, 2, 3),
        "tags": {"x"},
        "how": "b",
        "loose": {"any": 1},
        "extra": 7,
    }


def tally(counts: dict[int, int], most: int | None = None, rates: list[float] | None = None) -> None: ...


def test_names_of_members_become_numbers_if_the_hints_say_so() -> None:
    assert convert_arguments(tally, {"counts": {"1": 2, "-3": 4}}) == {"counts": {1: 2, -3: 4}}


def test_a_number_without_a_fraction_is_an_integer_as_its_schema_says() -> None:
    converted = convert_arguments(tally, {"counts": {"1": 2.0}, "most": 1e3, "rates": [1.0, 2.5]})
    assert converted == {"counts": {1: 2}, "most": 1000, "rates": [1.0, 2.5]}
    assert [type(converted["most"]), *map(type, converted["rates"])] == [int, float, float]
    with pytest.raises(msgspec.ValidationError):
        convert_arguments(tally, {"most": 1.5})


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        convert_arguments(plan, {"day": "tomorrow"})


def test_a_text_is_the_only_argument() -> None:
    def query(text: str) -> None: ...

    assert convert_arguments(query, "select 1") == {"text": "select 1"}


PNG = b"\x89PNG\r\n\x1a\n rest"


@dataclass
class Size:
    width: int
    height: int


class Box(msgspec.Struct):
    size: Size
    made: datetime.date


class Figure:
    def _repr_png_(self) -> bytes:
        return PNG


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("words", text_outcome("words")),
        (None, ToolOutcome()),
        (True, text_outcome("true")),
        ([1, "é"], text_outcome('[1,"é"]')),
        ({"a": {1: None}}, ToolOutcome(structured={"a": {"1": None}})),
        (Size(1, 2), ToolOutcome(structured={"width": 1, "height": 2})),
        (
            Box(Size(1, 2), datetime.date(2026, 1, 2)),
            ToolOutcome(structured={"size": {"width": 1, "height": 2}, "made": "2026-01-02"}),
        ),
        ({"path": Path("a/b")}, ToolOutcome(structured={"path": "a/b"})),
        (b"plain", text_outcome("plain")),
        (bytearray(b"<svg/>"), text_outcome("<svg/>")),
        (text_outcome("as it is", is_error=True), text_outcome("as it is", is_error=True)),
    ],
)
def test_what_a_function_returns(value: object, outcome: ToolOutcome) -> None:
    assert outcome_of(value) == outcome


def test_bytes_are_what_they_begin_like() -> None:
    coded = base64.b64encode(PNG).decode()
    assert outcome_of(PNG).parts == (Image(Inline("image/png", coded)),)
    assert outcome_of(Figure()).parts == (Image(Inline("image/png", coded)),)
    assert isinstance(outcome_of(b"%PDF-1.7").parts[0], Document)
    assert isinstance(outcome_of(b"RIFF....WAVE").parts[0], Audio)
    assert part_of(b"\x1f\x8b\x08") is None


def test_a_list_with_bytes_is_its_members() -> None:
    parts = outcome_of(["first:", PNG, {"a": 1}]).parts
    assert (parts[0], type(parts[1]), parts[2]) == (Text("first:"), Image, Text('{"a":1}'))


@pytest.mark.parametrize("value", [object(), Size, b"\x1f\x8b\x08", (n for n in range(3))])
def test_unserializable_return_value_raises_type_error(value: object) -> None:
    with pytest.raises(TypeError, match=r"the tool returned|Encoding objects"):
        outcome_of(value)


def test_exception_message_includes_the_last_line_in_its_own_file() -> None:
    def inner() -> None:
        int("x")

    with pytest.raises(ValueError) as caught:
        inner()
    error = caught.value
    line = last_line(error, __file__)
    told = failure_of(error, __file__, "mine.py").parts[0]
    elsewhere = failure_of(error, "/another/file.py", "file.py").parts[0]
    assert last_line(error, "/another/file.py") == 0
    assert told == Text(f"ValueError: invalid literal for int() with base 10: 'x' (mine.py, line {line}, in inner)")
    assert elsewhere == Text("ValueError: invalid literal for int() with base 10: 'x'")


def test_syntax_error_is_located_at_its_line() -> None:
    with pytest.raises(SyntaxError) as caught:
        compile("\n\nx = (", "file.py", "exec")
    assert last_line(caught.value, "file.py") == 3


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


def use(name: str, function: object, timeout: float = 60.0, **arguments: object) -> ToolOutcome:
    tools = Callables([function], timeout=timeout)
    return asyncio.run(tools.use(RunnableCall(key="1.1", id="a", name=name, arguments=arguments), print))


def test_functions_of_both_kinds_are_called_with_what_their_hints_say() -> None:
    assert words_of(use("length", length, point={"x": 3, "y": 4})) == "5.0"
    assert words_of(use("slow", slow, seconds=0)) == "done"


def test_they_see_the_context_of_the_caller() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    who.set("me")

    def whoami() -> str:
        return who.get()

    assert words_of(use("whoami", whoami)) == "me"


def test_a_function_that_returns_an_awaitable_is_awaited() -> None:
    def later(n: int):
        return slow(0)

    assert words_of(use("later", later, n=1)) == "done"


@pytest.mark.parametrize("kind", [SystemExit, StopIteration, KeyboardInterrupt, asyncio.CancelledError])
def test_no_exception_gets_out(kind: type[BaseException]) -> None:
    def leave() -> None:
        raise kind("enough")

    outcome = use("leave", leave)
    assert outcome.is_error
    assert f"{kind.__name__}: enough" in words_of(outcome)


def test_work_of_a_function_that_was_cancelled_does_not_cancel_the_caller() -> None:
    def in_a_pool() -> None:
        work = Future[None]()
        work.cancel()
        work.result()

    async def in_a_task() -> None:
        work = asyncio.get_running_loop().create_task(asyncio.sleep(0))
        work.cancel()
        await work

    for function in (in_a_pool, in_a_task):
        outcome = use(function.__name__, function)
        assert outcome.is_error
        assert "CancelledError" in words_of(outcome)
    assert "in in_a_pool" in words_of(use("in_a_pool", in_a_pool))


async def test_a_cancelled_caller_cancels_the_function() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    call = RunnableCall(key="1.1", id="a", name="wait", arguments={})
    calling = asyncio.get_running_loop().create_task(Callables((wait,)).use(call, lambda words: None))
    await begun.wait()
    calling.cancel()
    await asyncio.wait({calling})
    assert calling.cancelled()
    assert ended.is_set()


def test_a_timeout_of_the_tool_s_own_is_no_timeout_of_ours() -> None:
    def impatient() -> None:
        raise TimeoutError("the server is slow")

    assert words_of(use("impatient", impatient)).startswith("TimeoutError: the server is slow")


def test_what_takes_too_long_is_not_waited_for() -> None:
    assert words_of(use("slow", slow, timeout=0.01, seconds=600)) == "slow was stopped: it took longer than 0.01 s."
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
