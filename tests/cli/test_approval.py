import asyncio
import os
import pty
import sys
import termios
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Decision, Denied
from sightline.agent.core.limits import Reached
from sightline.agent.core.steps import Approve, Confirm, RunnableCall
from sightline.agent.service.approvers import Interrupted, SavedRule, SavedRules
from sightline.cli.keyboard import Keyboard, open_keyboard
from sightline.cli.tool_run import TerminalPerson
from sightline.model.parts import Text


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


async def test_lines_come_one_by_one_however_they_were_typed(terminal: tuple[int, int], capsys: object) -> None:
    ours, theirs = terminal
    typing = Keyboard(theirs)
    os.write(ours, " one\nzwei ü\nth".encode())
    first, second = await typing.line("> "), await typing.line("> ")
    waiting = asyncio.ensure_future(typing.line("> "))
    await asyncio.sleep(0)
    os.write(ours, b"ree\n")
    assert [first, second, await waiting] == ["one", "zwei ü", "three"]


async def test_the_end_of_what_is_typed_is_nothing_and_so_is_a_terminal_that_has_gone() -> None:
    # Its own: to close a number twice may close what somebody else has got meanwhile.
    ours, theirs = pty.openpty()
    typing = Keyboard(theirs)
    os.write(ours, b"\x04")
    assert await typing.line("> ") is None
    os.close(ours)
    assert await typing.line("> ") is None
    os.close(theirs)


async def test_cancelled_read_leaves_the_line_to_the_next_reader(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    typing = Keyboard(theirs)
    waiting = asyncio.ensure_future(typing.line("> "))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    os.write(ours, b"later\n")
    assert await typing.line("> ") == "later"


async def test_a_key_needs_no_enter_and_what_is_typed_with_it_is_not_lost(
    terminal: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = terminal
    before = termios.tcgetattr(theirs)
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
    assert [*keys, await typing.key("run? "), await typing.key("run? ")] == ["y", "n", "because", "ü", "a", "b"]
    assert termios.tcgetattr(theirs) == before
    assert "run? y\nrun? n\n" in capsys.readouterr().err


async def test_arrows_and_noise_are_no_keys_and_the_end_is_the_end(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
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


async def test_where_keys_cannot_be_had_one_by_one_it_is_a_line() -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"yes\n")
    assert await Keyboard(ours).key("> ") == "yes"
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
    [
        ("false", "ended with 1"),
        ("no-such-editor-here", "cannot be started"),
        ("'unclosed", "cannot be started"),
        (r"""sh -c 'printf "caf\351" > "$0"'""", "no UTF-8 text"),
        ("rm", "No such file"),
    ],
)
def test_an_editor_that_fails_changes_nothing(editor: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, told = edited(editor, capsys)
    assert text == '{"a": 1}'
    assert said in told


def test_no_keyboard_is_used_if_stderr_is_not_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe:
        def isatty(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stderr", Pipe())
    with open_keyboard() as typing:
        assert typing is None


def test_a_terminal_that_was_opened_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    monkeypatch.setattr("sightline.cli.keyboard.is_terminal", lambda stream: stream is sys.stderr)
    monkeypatch.setattr("sightline.cli.keyboard.os.open", lambda *_: read)
    with open_keyboard() as typing:
        assert typing is not None
    with pytest.raises(OSError):
        os.fstat(read)
    os.close(write)


EDIT = RunnableCall(key="1.1", id="a", name="edit_file", arguments={"path": "src/a.py", "lines": [1, 2]})
AGAIN = RunnableCall(key="1.2", id="b", name="edit_file", arguments={"path": "src/b.py", "lines": [3]})
SHELL = RunnableCall(key="1.3", id="c", name="shell", arguments="rm *")
PLACE = "folder /project"
Told = pytest.CaptureFixture[str]


@dataclass
class Typed:
    """A person who has decided beforehand what to type."""

    lines: list[str]
    editor: str | None = None
    prompts: list[str] = field(default_factory=list)

    async def line(self, prompt: str) -> str | None:
        self.prompts.append(prompt)
        return self.lines.pop(0) if self.lines else None

    async def key(self, prompt: str) -> str | None:
        return await self.line(prompt)

    async def edit(self, text: str, suffix: str) -> str | None:
        self.prompts.append(f"{suffix}: {text}")
        return self.editor


@dataclass
class Desk:
    folder: Path
    left: asyncio.Event = field(default_factory=asyncio.Event)

    def person(self, typed: Typed, *, says_yes: bool = False, interrupted: Interrupted | None = None) -> TerminalPerson:
        return TerminalPerson(
            typed,
            leave=self.left.set,
            kept=SavedRules(self.folder),
            places={"edit_file": PLACE, "shell": PLACE},
            says_yes=says_yes,
            interrupted=interrupted,
        )

    def decided(
        self, typed: Typed, *calls: RunnableCall, objection: str = "", says_yes: bool = False
    ) -> list[Decision]:
        step = Approve(1, calls or (EDIT,), {"1.1": objection} if objection else {})
        return list(asyncio.run(self.person(typed, says_yes=says_yes).approve("r_1", step)).values())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        (["y"], Allowed()),
        (["a"], Allowed(rule=ApprovalRule("edit_file", "allow"))),
        (["n", "not this file"], Denied("not this file")),
        (["n", ""], Denied("")),
        (["h", "it is done"], AnsweredByHand((Text("it is done"),))),
        (["", "maybe", "v", "y"], Allowed()),
    ],
)
def test_a_key_is_a_decision(desk: Desk, lines: list[str], decision: Decision) -> None:
    assert desk.decided(Typed(lines)) == [decision]


def test_full_arguments_are_shown_before_the_decision(desk: Desk, capsys: Told) -> None:
    desk.decided(Typed(["y"]))
    shown = capsys.readouterr().err
    assert 'Run edit_file?\n  {\n    "path": "src/a.py"' in shown
    long = RunnableCall(key="1.1", id="a", name="shell", arguments="x" * 3000 + "\x1b[2J")
    desk.decided(Typed(["v", "y"]), long)
    shown = capsys.readouterr().err
    assert "… 1,004 more characters" in shown
    assert "x" * 3000 + "\\x1b[2J" in shown


def test_leave_for_this_run_counts_for_the_calls_behind_it(desk: Desk) -> None:
    typed = Typed(["a", "y"])
    rule = ApprovalRule("edit_file", "allow")
    assert desk.decided(typed, EDIT, AGAIN, SHELL) == [Allowed(rule=rule), Allowed(), Allowed()]
    assert len(typed.prompts) == 2
    assert SavedRules(desk.folder).all() == ()


def test_yes_to_everything_skips_the_questions(desk: Desk) -> None:
    assert desk.decided(Typed([]), EDIT, SHELL, says_yes=True) == [Allowed(), Allowed()]


NARROW = SavedRule("edit_file", PLACE, {"/path": "src/**", "/lines": "[1,2]"})
OTHER = RunnableCall(key="1.1", id="a", name="other", arguments={})
ASKED = (
    "Always run edit_file (/path like src/**, /lines like [1,2]); any other arguments that a call may have, "
    "of folder /project? [y/N] "
)


@pytest.mark.parametrize(
    ("lines", "call", "kept", "said"),
    [
        (["A", "src/**", "", "y"], EDIT, NARROW, ASKED),
        (["A", "-", "-", "y"], EDIT, SavedRule("edit_file", PLACE, {}), ""),
        (["A", "", "", "", "y"], EDIT, None, ""),
        (["A", "", "rm build/*", "y"], SHELL, SavedRule("shell", PLACE, {"": "rm build/*"}), "would be a wildcard"),
        (["A", "y"], OTHER, None, "The origin of this tool is unknown"),
    ],
    ids=["as narrow as entered", "any argument", "not confirmed", "a star in a value", "unknown origin"],
)
def test_always_is_confirmed_and_stored_as_narrow_as_it_was_entered(
    desk: Desk, capsys: Told, lines: list[str], call: RunnableCall, kept: SavedRule | None, said: str
) -> None:
    typed = Typed(lines)
    assert desk.decided(typed, call) == [Allowed() if kept is None else Allowed(rule=kept.rule)]
    assert SavedRules(desk.folder).all() == (() if kept is None else (kept,))
    assert said in capsys.readouterr().err + "".join(typed.prompts)


def test_rules_that_cannot_be_kept_are_not_followed_either(desk: Desk, capsys: Told) -> None:
    (desk.folder / "approvals.json").write_text("nonsense")
    assert desk.decided(Typed(["A", "-", "-", "y", "y"])) == [Allowed()]
    assert "It cannot be stored" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("editor", "lines", "decision", "said"),
    [
        ('{"path": "b"}', ["e"], Allowed({"path": "b"}), ""),
        (None, ["e", '{"path": "c"}'], Allowed({"path": "c"}), ""),
        (None, ["e", "", "y"], Allowed(), "Nothing is changed."),
        ("{", ["e", "y"], Allowed(), "This is not JSON"),
        ("[1]", ["e", "y"], Allowed(), "must be a JSON object"),
    ],
)
def test_arguments_are_edited(
    desk: Desk, capsys: Told, editor: str | None, lines: Sequence[str], decision: Decision, said: str
) -> None:
    assert desk.decided(Typed(list(lines), editor)) == [decision]
    assert said in capsys.readouterr().err


async def test_what_could_not_be_used_is_mended_and_not_written_anew(desk: Desk) -> None:
    typed = Typed(["e", "e"], '{"path": 1}')
    person = desk.person(typed)
    await person.approve("r_1", Approve(1, (EDIT,)))
    await person.approve("r_1", Approve(1, (EDIT,), {"1.1": "path is no text"}))
    assert typed.prompts[-1] == '.json: {"path": 1}'


def test_free_text_is_edited_as_text(desk: Desk) -> None:
    typed = Typed(["e"], "rm one\n")
    assert desk.decided(typed, SHELL) == [Allowed("rm one\n")]
    assert typed.prompts[-1] == ".txt: rm *"


def test_objection_is_shown_before_the_question(desk: Desk, capsys: Told) -> None:
    desk.decided(Typed(["y"]), objection="path is missing")
    assert "These arguments cannot be used: path is missing" in capsys.readouterr().err


@pytest.mark.parametrize("lines", [["q"], [], ["n"], ["A", ""]])
async def test_to_stop_leaves_the_run_and_decides_nothing(desk: Desk, lines: list[str]) -> None:
    desk.left = asyncio.Event()
    deciding = asyncio.ensure_future(desk.person(Typed(lines)).approve("r_1", Approve(1, (EDIT,))))
    await desk.left.wait()
    assert not deciding.done()
    deciding.cancel()
    await asyncio.wait({deciding})


def test_limit_is_raised_only_after_confirmation(desk: Desk, capsys: Told) -> None:
    step = Confirm(1, Reached("requests", 2, 2, 3))
    for line, goes_on in (("y", True), ("", False), ("no", False)):
        typed = Typed([line])
        assert asyncio.run(desk.person(typed).confirm("r_1", step)) is goes_on
        assert typed.prompts == ["Raise it to 3 and go on? [y/N] "]
    assert "the limit of 2 model requests is reached." in capsys.readouterr().err


def test_interrupted_calls_are_asked_about_unless_decided_in_advance(desk: Desk, capsys: Told) -> None:
    async def told(typed: Typed, interrupted: Interrupted | None) -> list[Interrupted]:
        person = desk.person(typed, says_yes=True, interrupted=interrupted)
        return list((await person.mid_flight("r_1", [EDIT, SHELL])).values())

    assert asyncio.run(told(Typed(["y", ""]), None)) == ["again", "skip"]
    assert "it is not known how far it got" in capsys.readouterr().err
    assert asyncio.run(told(Typed([]), "skip")) == ["skip", "skip"]
