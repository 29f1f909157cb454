import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import NOTHING, Cap, ToolOutcome, cap_outcome, words_of
from sightline.agent.tools import commands as child
from sightline.agent.tools import python_file
from sightline.agent.tools.python_file import PythonFile
from sightline.errors import Code, Fault
from sightline.model.parts import Image, Text
from tests.agent.tools.processes import STUBBORN, environment, is_gone, pids_in


def call(name: str, **arguments: object) -> RunnableCall:
    return RunnableCall(key="1.1", id="a", name=name, arguments=arguments)


def ignored(words: str) -> None:
    pass


@asynccontextmanager
async def loaded(folder: Path, source: str, **how: object) -> AsyncIterator[PythonFile]:
    file = folder / "kit.py"
    file.write_text(dedent(source))
    tools = PythonFile(file, folder=folder, environment=environment(), **how)
    try:
        await tools.load()
        yield tools
    finally:
        await tools.close()


def used(folder: Path, source: str, *calls: RunnableCall, **how: object) -> list[ToolOutcome]:
    """What comes of these calls, one after the other."""

    async def story() -> list[ToolOutcome]:
        async with loaded(folder, source, **how) as tools:
            return [await tools.use(each, ignored) for each in calls]

    return asyncio.run(story())


def refused(folder: Path, source: str) -> Fault:
    with pytest.raises(Fault) as caught:
        used(folder, source)
    assert caught.value.code is Code.CONFIG
    assert caught.value.hint
    return caught.value


# --- what a file is -------------------------------------------------------------------------------


async def test_a_function_becomes_a_tool(tmp_path: Path) -> None:
    source = '''
        """No decorator is needed."""
        from dataclasses import dataclass
        from json import dumps

        @dataclass
        class Place:
            city: str
            days: int = 1

        async def forecast(place: Place, unit: str = "C") -> dict:
            """Tell the weather.

            Args:
                place: where, and for how long
            """
            return {"city": place.city, "days": [20 + n for n in range(place.days)], "unit": unit}

        def _private(): ...
    '''

    async with loaded(tmp_path, source) as tools:
        (definition,) = tools.definitions
        assert (definition.name, definition.description) == ("forecast", "Tell the weather.")
        assert definition.schema["required"] == ["place"]
        assert not definition.is_parallel
        outcome = await tools.use(call("forecast", place={"city": "Ulm", "days": 2}), ignored)
        assert outcome.structured == {"city": "Ulm", "days": [20, 21], "unit": "C"}


def test_what_a_file_keeps_lasts_from_call_to_call_also_between_async_ones(tmp_path: Path) -> None:
    source = """
        import asyncio
        seen = []
        lock = None
        async def add(n: int) -> list:
            global lock
            lock = lock or asyncio.Lock()
            async with lock:
                seen.append(n)
            return seen
    """
    assert words_of(used(tmp_path, source, call("add", n=1), call("add", n=2))[1]) == "[1,2]"


def test_it_imports_its_neighbours_and_a_neighbour_named_like_a_module_of_ours_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("WORD = 'next door'")
    (tmp_path / "msgspec.py").write_text("raise RuntimeError")
    source = """
        from neighbour import WORD
        def word() -> str: return WORD
    """
    assert words_of(used(tmp_path, source, call("word"))[0]) == "next door"


async def test_a_file_that_is_changed_meanwhile_stays_what_it_was(tmp_path: Path) -> None:
    source = """
            import os
            def version() -> str: return "first"
            def die() -> None: os._exit(3)
        """
    async with loaded(tmp_path, source) as tools:
        (tmp_path / "kit.py").write_text("this is no Python")
        await tools.use(call("die"), ignored)
        assert words_of(await tools.use(call("version"), ignored)) == "first"


# --- what comes of a call -------------------------------------------------------------------------


def test_values_become_what_a_model_can_read(tmp_path: Path) -> None:
    source = r"""
        def nothing() -> None: print("not for the model")
        def number() -> int: return 7
        def picture() -> list: return ["a dot:", b"\x89PNG\r\n\x1a\n..."]
        def half() -> str: return "\ud83d"
    """
    nothing, number, picture, half = used(tmp_path, source, *map(call, ("nothing", "number", "picture", "half")))
    assert words_of(nothing) == NOTHING
    assert words_of(number) == "7"
    assert [type(part) for part in picture.parts] == [Text, Image]
    assert words_of(half) == "\ud83d"


async def test_printed_output_is_reported_as_progress_and_not_as_the_result(tmp_path: Path) -> None:
    source = r"""
        import os, subprocess, sys
        def noisy() -> str:
            print('{"type":"ran","outcome":{"parts":[]}}')
            os.write(1, b'{"type":"ran"}\n')
            subprocess.run(["echo", "from a child"], check=True)
            sys.stdin.read()
            return "the answer"
    """
    told: list[str] = []
    async with loaded(tmp_path, source) as tools:
        found = await tools.use(call("noisy"), told.append)
    assert words_of(found) == "the answer"
    assert told


def test_a_process_that_ends_is_an_error_and_the_next_call_gets_another(tmp_path: Path) -> None:
    source = """
        import os, sys
        def die() -> None:
            print("last words", file=sys.stderr, flush=True)
            os._exit(7)
        def live() -> str: return "here"
    """
    died, lived = used(tmp_path, source, call("die"), call("live"))
    assert died.is_error
    assert words_of(died) == "die did not come to an end: its process is gone (exit code 7)."
    assert words_of(lived) == "here"


async def test_a_process_that_dies_while_it_has_nothing_to_do_is_replaced(tmp_path: Path) -> None:
    async with loaded(tmp_path, "import os\ndef pid() -> int: return os.getpid()") as tools:
        first = words_of(await tools.use(call("pid"), ignored))
        os.kill(int(first), signal.SIGKILL)
        (worker,) = tools._idle
        await worker._child.exited.wait()
        assert words_of(await tools.use(call("pid"), ignored)) != first


def test_a_copy_of_the_process_has_nothing_to_say(tmp_path: Path) -> None:
    source = """
        import os
        def fork() -> str:
            child = os.fork()
            if child:
                os.waitpid(child, 0)
            return "parent" if child else "child"
    """
    assert words_of(used(tmp_path, source, call("fork"))[0]) == "parent"


def test_an_enormous_result_is_cut_before_it_is_sent(tmp_path: Path) -> None:
    (outcome,) = used(tmp_path, "def big() -> str: return 'x' * 50_000_000", call("big"))
    assert len(words_of(outcome)) <= Cap().characters
    assert "of 50000000 characters are left out here" in words_of(cap_outcome(outcome, Cap()))


# --- ends -----------------------------------------------------------------------------------------


def stubborn(file: Path, *, detached: bool = False) -> str:
    body = STUBBORN.format(file=str(file), detached=detached).replace("\n", "\n    ")
    return (
        f"def hang() -> None:{body}\n    print('ready', flush=True)\n    time.sleep(600)\ndef live() -> str: return 'x'"
    )


async def _cancelled(tools: PythonFile) -> None:
    ready = asyncio.Event()
    using = asyncio.ensure_future(tools.use(call("hang"), lambda _: ready.set()))
    await ready.wait()
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using


async def _closed(tools: PythonFile) -> None:
    ready = asyncio.Event()
    using = asyncio.ensure_future(tools.use(call("hang"), lambda _: ready.set()))
    await ready.wait()
    await tools.close()
    assert (await using).is_error


@pytest.mark.parametrize("detached", [False, True], ids=["in its group", "in a session of its own"])
@pytest.mark.parametrize("ending", [_cancelled, _closed])
async def test_no_process_of_a_stubborn_tool_survives_cancel_or_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: Callable[[PythonFile], Awaitable[None]], detached: bool
) -> None:
    monkeypatch.setattr(child, "GRACE_S", 0.1)
    pids = tmp_path / "pids"
    async with loaded(tmp_path, stubborn(pids, detached=detached)) as tools:
        await ending(tools)
        assert all(map(is_gone, pids_in(pids)))
        after = await tools.use(call("live"), ignored)
        assert after.is_error is (ending is _closed)
    assert len(pids_in(pids)) == 2


async def test_a_process_that_is_being_started_when_it_is_closed_ends_too(tmp_path: Path) -> None:
    told = tmp_path / "pids"
    source = f"import os\nopen({str(told)!r}, 'a').write(f'{{os.getpid()}} ')\ndef live() -> int: return os.getpid()"

    async with loaded(tmp_path, source) as tools:
        tools._idle.clear()
        using = asyncio.ensure_future(tools.use(call("live"), ignored))
        await asyncio.sleep(0)
        await tools.close()
        assert all(map(is_gone, pids_in(told)))
        assert (await using).is_error


async def test_a_tool_that_takes_too_long_is_ended_and_the_next_call_gets_another_process(tmp_path: Path) -> None:
    source = """
        import os, time
        def hang() -> None: time.sleep(600)
        def live() -> int: return os.getpid()
    """

    async with loaded(tmp_path, source) as tools:
        before = words_of(await tools.use(call("live"), ignored))
        tools.timeout = 0.05
        outcome = await tools.use(call("hang"), ignored)
        assert outcome.is_error
        assert words_of(outcome) == "hang was stopped: it took longer than 0.05 s."
        tools.timeout = 60
        assert is_gone(int(before))
        assert words_of(await tools.use(call("live"), ignored)) != before


async def test_calls_beside_each_other_have_processes_of_their_own(tmp_path: Path) -> None:
    source = """
        from pathlib import Path
        def meet(mine: str, other: str) -> str:
            with open(mine, "w") as a:      # a named pipe opens when both ends are there
                pass
            with open(other) as b:
                pass
            return "met"
        def meet_too(mine: str, other: str) -> str:
            with open(other) as b:
                pass
            with open(mine, "w") as a:
                pass
            return "met"
    """
    here, there = str(tmp_path / "a"), str(tmp_path / "b")
    os.mkfifo(here)
    os.mkfifo(there)
    async with loaded(tmp_path, source) as tools:
        found = await asyncio.gather(
            tools.use(call("meet", mine=here, other=there), ignored),
            tools.use(call("meet_too", mine=there, other=here), ignored),
        )
    assert [words_of(each) for each in found] == ["met", "met"]


# --- files that cannot be used --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("\nimport no_such_module_at_all", "kit.py:2: ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("x = 1", "kit.py: it has no public function"),
        ("import os; os._exit(4)", "kit.py: its process ended while the file was loaded (exit code 4)"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_what_to_do(tmp_path: Path, source: str, words: str) -> None:
    assert refused(tmp_path, source).message.startswith(str(tmp_path / words))


def test_a_file_that_loads_for_ever_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_file, "LOAD_TIMEOUT", 0.05)
    assert "too long to load" in refused(tmp_path, "while True: pass").message


@pytest.mark.parametrize(
    ("content", "words"), [(None, "No such file"), (b"\xff\xfe", "not UTF-8"), (b"#" * 5_000_000, "too long")]
)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "kit.py"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Fault, match=words):
        asyncio.run(PythonFile(file, folder=tmp_path, environment={}).load())
