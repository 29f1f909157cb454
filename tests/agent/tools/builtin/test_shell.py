import asyncio
from pathlib import Path

import pytest

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import words_of
from sightline.agent.tools import commands as child
from sightline.agent.tools.builtin.builtin import Builtin
from tests.agent.tools.builtin.rooms import refused, said
from tests.agent.tools.processes import is_gone, pids_in


def call(command: str) -> RunnableCall:
    return RunnableCall(key="1.1", id="a", name="run_command", arguments={"command": command})


def test_a_command_runs_in_the_folder_and_its_words_come_in_order(tmp_path: Path) -> None:
    assert said(tmp_path, "run_command", command="pwd; echo two >&2; printf three") == (
        f"{tmp_path}\ntwo\nthree\n[exit code 0]"
    )
    assert said(tmp_path, "run_command", command="cat") == "[exit code 0]"
    assert refused(tmp_path, "run_command", command="echo no; exit 3") == "no\n[exit code 3]"
    assert refused(tmp_path, "run_command", command="kill -9 $$") == "[ended by signal 9]"
    assert "not found" in refused(tmp_path, "run_command", command="no_such_command_at_all")


@pytest.mark.parametrize("command", ["a\0b", "echo \ud83d"])
def test_what_is_no_command_line(tmp_path: Path, command: str) -> None:
    assert "no command line can" in refused(tmp_path, "run_command", command=command)


def test_it_sees_no_secrets(tmp_path: Path) -> None:
    async def story() -> str:
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/home-of-somebody", "OPENAI_API_KEY": "sk-secret"}
        tools = Builtin(tmp_path, ["run_command"], environment=environment)
        try:
            return words_of(await tools.use(call("env"), lambda words: None))
        finally:
            await tools.close()

    shown = asyncio.run(story())
    assert "HOME=/home-of-somebody" in shown
    assert "sk-secret" not in shown


def test_a_flood_is_cut_while_it_comes(tmp_path: Path) -> None:
    shown = said(tmp_path, "run_command", command="echo begin; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end")
    assert shown.startswith("begin\nxxx")
    assert "of 50000011 bytes are left out here]" in shown
    assert shown.endswith("x\nend\n[exit code 0]")
    assert len(shown) < 70_000


def test_command_reports_progress_and_is_stopped_on_timeout(tmp_path: Path) -> None:
    told: list[str] = []

    async def story(seconds: float) -> str:
        tools = Builtin(tmp_path, ["run_command"], environment={"PATH": "/usr/bin:/bin"}, timeout=seconds)
        try:
            outcome = await tools.use(call("echo half; exec sleep 600"), told.append)
            assert outcome.is_error
            return words_of(outcome)
        finally:
            await tools.close()

    # A machine that is too busy to begin within the first of these times has more.
    outcomes = (asyncio.run(story(seconds)) for seconds in (0.3, 3.0, 30.0))
    assert next(each for each in outcomes if told) == "half\n[stopped: it took too long]"
    assert told == ["half"]


ENDLESS = """
trap '' TERM
(trap '' TERM; exec sleep 600) >/dev/null 2>&1 &
one=$!
setsid sh -c 'trap "" TERM; exec sleep 600' >/dev/null 2>&1 &
echo $$ $one $! > pids
echo ready
"""


def test_what_it_leaves_in_the_background_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "GRACE_S", 0.1)
    assert said(tmp_path, "run_command", command=ENDLESS) == "ready\n[exit code 0]"
    assert all(map(is_gone, pids_in(tmp_path / "pids")))


# --- local_shell ----------------------------------------------------------------------------------


def test_an_action_of_the_local_shell_runs_as_it_says(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    shown = said(
        tmp_path,
        "local_shell",
        type="exec",
        command=["sh", "-c", 'pwd; echo "$WORD $1"', "sh", "a b"],
        env={"WORD": "so"},
        working_directory="sub",
        timeout_ms=5000,
        user=None,
    )
    assert shown == f"{(tmp_path / 'sub').resolve()}\nso a b\n[exit code 0]"
    inside = said(tmp_path, "local_shell", command=["pwd"], env=None, working_directory=str(tmp_path))
    assert inside == f"{tmp_path.resolve()}\n[exit code 0]"
    assert refused(tmp_path, "local_shell", command=["sh", "-c", "exit 4"]) == "[exit code 4]"


def test_an_action_keeps_to_its_own_time_and_never_to_more_than_ours(tmp_path: Path) -> None:
    assert "took too long" in refused(tmp_path, "local_shell", command=["sleep", "60"], timeout_ms=50)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"command": []}, "no command to run"),
        ({"command": ["true"], "user": "root"}, "as no other"),
        ({"command": ["true"], "working_directory": ".."}, "no folder '..'"),
        ({"command": ["true"], "working_directory": "/etc"}, "no folder '/etc'"),
        ({"command": ["true"], "working_directory": "missing"}, "no folder 'missing'"),
        ({"command": ["true"], "working_directory": "a\0b"}, "no folder 'a\\x00b'"),
        ({"command": ["true"], "working_directory": "\ud800"}, "no folder '\\ud800'"),
        ({"command": ["true"], "working_directory": "round"}, "no folder 'round'"),
        ({"command": ["a\0b"]}, "no command line can"),
        ({"command": ["no_such_command_at_all"]}, "No such file or directory"),
    ],
)
def test_what_an_action_cannot_be(tmp_path: Path, action: dict[str, object], words: str) -> None:
    (tmp_path / "round").symlink_to("round")
    assert words in refused(tmp_path, "local_shell", **action)
