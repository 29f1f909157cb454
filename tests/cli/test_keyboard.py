import asyncio
import os
import pty
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sightline.cli.keyboard import Keyboard, keyboard


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    for each in (ours, theirs):
        with suppress(OSError):  # a test may have hung up
            os.close(each)


def test_lines_come_one_by_one_however_they_were_typed(terminal: tuple[int, int], capsys: object) -> None:
    ours, theirs = terminal

    async def story() -> list[str | None]:
        typing = Keyboard(theirs)
        os.write(ours, " one\nzwei ü\nth".encode())
        first, second = await typing.line("> "), await typing.line("> ")
        waiting = asyncio.ensure_future(typing.line("> "))
        await asyncio.sleep(0)
        os.write(ours, b"ree\n")
        return [first, second, await waiting]

    assert asyncio.run(story()) == ["one", "zwei ü", "three"]


def test_the_end_of_what_is_typed_is_nothing_and_so_is_a_terminal_that_has_gone(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal

    async def story() -> None:
        typing = Keyboard(theirs)
        os.write(ours, b"\x04")
        assert await typing.line("> ") is None
        os.close(ours)
        assert await typing.line("> ") is None

    asyncio.run(story())


def test_who_stops_waiting_leaves_the_line_to_the_next(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal

    async def story() -> None:
        typing = Keyboard(theirs)
        waiting = asyncio.ensure_future(typing.line("> "))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        os.write(ours, b"later\n")
        assert await typing.line("> ") == "later"

    asyncio.run(story())


def test_a_key_needs_no_enter_and_what_is_typed_with_it_is_not_lost(
    terminal: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = terminal
    before = termios.tcgetattr(theirs)

    async def story() -> list[str | None]:
        typing = Keyboard(theirs)
        waiting = asyncio.ensure_future(typing.key("run? "))
        await asyncio.sleep(0)
        assert not termios.tcgetattr(theirs)[3] & termios.ICANON
        os.write(ours, b"y")
        keys = [await waiting]
        os.write(ours, b"n\nbecause\n")
        keys += [await typing.key("run? "), await typing.line("why? ")]
        os.write(ours, "\n ü".encode())
        keys.append(await typing.key("run? "))
        os.write(ours, b"ab")
        return [*keys, await typing.key("run? "), await typing.key("run? ")]

    assert asyncio.run(story()) == ["y", "n", "because", "ü", "a", "b"]
    assert termios.tcgetattr(theirs) == before
    assert "run? y\nrun? n\n" in capsys.readouterr().err


def test_arrows_and_noise_are_no_keys_and_the_end_is_the_end(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal

    async def story() -> None:
        typing = Keyboard(theirs)
        for noise in (b"\x1b[A", b"\x1b[1;5C", b"\x1bOP", b"\x1b", b"\xff\xff\xff\xff\xff", b""):
            waiting = asyncio.ensure_future(typing.key("> "))
            await asyncio.sleep(0)
            os.write(ours, noise + b"q")
            assert await asyncio.wait_for(waiting, 60) == "q"
        waiting = asyncio.ensure_future(typing.key("> "))
        await asyncio.sleep(0)
        os.write(ours, b"\x04")
        assert await waiting is None

    asyncio.run(story())


def test_where_keys_cannot_be_had_one_by_one_it_is_a_line() -> None:
    ours, theirs = os.pipe()

    async def story() -> str | None:
        return await Keyboard(ours).key("> ")

    os.write(theirs, b"yes\n")
    assert asyncio.run(story()) == "yes"
    os.close(ours)
    os.close(theirs)


def edited(editor: str, capsys: pytest.CaptureFixture[str]) -> tuple[str | None, str]:
    typing = Keyboard(0, editor=editor)
    text = asyncio.run(typing.edit('{"a": 1}', ".json"))
    assert not typing.is_lent
    return text, capsys.readouterr().err


def test_an_editor_gets_a_file_and_what_it_leaves_is_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "edit it.py"
    script.write_text(
        "import sys, pathlib\np = pathlib.Path(sys.argv[-1])\n"
        "assert p.suffix == '.json'\np.write_text(p.read_text().replace('1', '2'))\n"
    )
    assert edited(f"{sys.executable} '{script}'", capsys) == ('{"a": 2}', "")
    assert edited("", capsys) == (None, "")


@pytest.mark.parametrize(
    ("editor", "said"),
    [("false", "ended with 1"), ("no-such-editor-here", "cannot be started"), ("'unclosed", "cannot be started")],
)
def test_an_editor_that_fails_changes_nothing(editor: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, told = edited(editor, capsys)
    assert text == '{"a": 1}'
    assert said in told


def test_where_nobody_sees_the_question_there_is_no_keyboard(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe:
        def isatty(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stderr", Pipe())
    assert keyboard() is None


def test_a_keyboard_of_our_own_is_closed() -> None:
    read, write = os.pipe()
    Keyboard(read, owns=True).close()
    with pytest.raises(OSError):
        os.fstat(read)
    os.close(write)
    Keyboard(0).close()
    os.fstat(0)
