"""Runs with tools as a person has them: a real terminal, real processes, a provider over HTTP."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.model.parts import Text, ToolCall
from tests.loop_stage import calls, reply, says
from tests.running_stage import plays
from tests.terminal_stage import CTRL_C, PROGRAM, Seat, seated
from tests.tool_desk import ToolDesk, tool_desk

ASK = ["ask", "--tools", "tools.py", "Add them."]
PROMPT = "? help] "


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[ToolDesk]:
    with tool_desk(tmp_path) as made:
        yield made


def add(a: int, b: int, name: str = "c1") -> ToolCall:
    return ToolCall(name, "add", json.dumps({"a": a, "b": b}))


def wait(name: str = "w1") -> ToolCall:
    return ToolCall(name, "wait", '{"name": "gate"}')


def run_in(seat: Seat) -> str:
    found = re.search(r"sightline resume (r_\w+)", seat.shown)
    assert found, seat.shown
    return found[1]


def told(desk: ToolDesk, number: int) -> list[str]:
    """What the model was told of its calls in a request."""
    return [each["content"] for each in desk.upstream.seen[number].json()["messages"] if each["role"] == "tool"]


def test_each_way_to_decide(desk: ToolDesk) -> None:
    asked = [add(n, n, f"c{n}") for n in range(1, 5)]
    desk.upstream.script = [plays(reply(Text("Let me see."), *asked)), plays(calls(add(9, 9))), plays(says("Done."))]
    with seated(ASK, desk.folder, desk.environment) as seat:
        seat.until('→ add {"a": 4, "b": 4}')
        seat.answer(PROMPT, "y")
        seat.answer(PROMPT, "e")
        seat.answer("(empty: as they were): ", '{"a": "20", "b": 2}')
        seat.answer(PROMPT, "n")
        seat.answer("may be empty) ", "too many threes")
        seat.answer(PROMPT, "h")
        seat.answer("What the model gets: ", "eight, I think")
        seat.until("These arguments cannot be used")
        seat.until('- /a: expected integer, got string "20"')
        seat.answer(PROMPT, "e")
        seat.answer("(empty: as they were): ", '{"a": 20, "b": 2}')
        seat.answer(PROMPT, "a")
        assert seat.ended() == 0
    assert desk.traces == ["add 1 1", "add 20 2", "add 9 9"]
    assert told(desk, 1) == ["2", "22", "The user does not allow this call. too many threes", "eight, I think"]
    sent = desk.upstream.seen[1].json()["messages"][1]["tool_calls"]
    assert json.loads(sent[1]["function"]["arguments"]) == {"a": 20, "b": 2}
    assert "Let me see." in seat.shown
    assert "← add: 22" in seat.shown
    assert "← add (denied): The user does not allow this call. too many threes" in seat.shown
    assert "← add (answered by hand): eight, I think" in seat.shown
    assert re.search(r"acme/m: 3 rounds, 3 tool calls, 30 tokens in, 15 out, <?\$[\d.]+, [\d.]+ s", seat.shown)


def test_permanent_approval_is_limited_as_entered_and_noted_on_each_use(desk: ToolDesk) -> None:
    desk.upstream.script = [
        plays(calls(add(1, 1))), plays(says("Two.")),
        plays(calls(add(1, 5))), plays(calls(add(2, 2))), plays(says("Done.")),
    ]  # fmt: skip
    with seated(ASK, desk.folder, desk.environment) as seat:
        seat.answer(PROMPT, "A")
        seat.answer("/a [1]: ", "")
        seat.answer("/b [1]: ", "-")
        seat.answer("[y/N] ", "y")
        assert seat.ended() == 0
    kept = json.loads((desk.folder / "data" / "approvals.json").read_text())
    assert kept == [{"tool": "add", "place": f"python {desk.folder / 'tools.py'}", "arguments": {"/a": "1"}}]
    with seated(ASK, desk.folder, desk.environment) as seat:
        seat.until("note: you have allowed this for all runs: add (/a like 1)")
        seat.until("← add: 6")
        seat.answer(PROMPT, "y")
        assert seat.ended() == 0
    assert desk.traces == ["add 1 1", "add 1 5", "add 2 2"]


def test_confirm_flag_prompts_even_for_calls_allowed_by_rules(desk: ToolDesk) -> None:
    desk.upstream.script = [plays(calls(add(1, 1))), plays(says("Two."))]
    words = ["ask", "--tools", "sums", "--confirm", "Add."]
    with seated(words, desk.folder, desk.environment) as seat:
        seat.answer(PROMPT, "y")
        assert seat.ended() == 0
    assert desk.traces == ["add 1 1"]


def test_quitting_at_a_prompt_prompts_again_on_resume(desk: ToolDesk) -> None:
    desk.upstream.script = [plays(calls(add(1, 1))), plays(says("Two."))]
    with seated(ASK, desk.folder, desk.environment) as seat:
        seat.answer(PROMPT, "q")
        assert seat.ended() == 130
    assert desk.traces == []
    with seated(["resume", run_in(seat)], desk.folder, desk.environment) as again:
        again.until("1 round so far")
        again.answer(PROMPT, "y")
        assert again.ended() == 0
    assert (desk.traces, len(desk.upstream.seen)) == (["add 1 1"], 2)
    assert "Two." in again.shown


def test_ctrl_c_once_lets_the_tool_end_and_resume_goes_on_behind_it(desk: ToolDesk) -> None:
    gate = desk.pipe()
    desk.upstream.script = [plays(calls(wait(), add(1, 1, "c2"))), plays(says("Both."))]
    with seated([*ASK, "--yes"], desk.folder, desk.environment) as seat:
        with gate.open("w") as writing:  # opens when the tool reads
            seat.type(CTRL_C)
            seat.until("stopping after this step; Ctrl-C again stops at once")
            writing.write("opened")
        assert seat.ended() == 130
    assert desk.traces == ["wait gate"]
    with seated(["resume", run_in(seat)], desk.folder, desk.environment) as again:
        assert again.ended() == 0
    assert desk.traces == ["wait gate", "add 1 1"]
    assert told(desk, 1) == ["opened", "2"]


@pytest.mark.parametrize("again", ["y", "n"])
def test_ctrl_c_twice_ends_the_tool_and_resume_asks_about_it(desk: ToolDesk, again: str) -> None:
    gate = desk.pipe()
    desk.upstream.script = [plays(calls(wait())), plays(says("Over."))]
    with seated([*ASK, "--yes"], desk.folder, desk.environment) as seat, gate.open("w"):
        seat.type(CTRL_C)
        seat.until("stopping after this step")
        seat.type(CTRL_C)
        assert seat.ended() == 130
    with seated(["resume", run_in(seat)], desk.folder, desk.environment) as resumed:
        resumed.until("it is not known how far it got")
        resumed.answer("[y/N] ", again)
        if again == "y":
            with gate.open("w") as writing:
                writing.write("the second time")
        assert resumed.ended() == 0
    assert desk.traces == ["wait gate"] * (2 if again == "y" else 1)
    expected = "the second time" if again == "y" else "This call was interrupted, and it is not known how far it got."
    assert told(desk, 1)[0].startswith(expected)


def test_terminating_the_process_ends_the_tool_and_keeps_the_run(desk: ToolDesk) -> None:
    gate = desk.pipe()
    desk.upstream.script = [plays(calls(wait()))]
    with seated([*ASK, "--yes"], desk.folder, desk.environment) as seat:
        writing = os.open(gate, os.O_WRONLY)  # opens when the tool reads
        seat.process.terminate()
        assert seat.ended() == 143
        with pytest.raises(BrokenPipeError):  # nobody reads any more
            os.write(writing, b"too late")
        os.close(writing)
    assert "sightline resume r_" in seat.shown


def test_ctrl_c_at_a_question_leaves_the_run(desk: ToolDesk) -> None:
    desk.upstream.script = [plays(calls(add(1, 1)))]
    with seated(ASK, desk.folder, desk.environment) as seat:
        seat.until(PROMPT)
        seat.type(CTRL_C)
        assert seat.ended() == 130
    assert "sightline resume r_" in seat.shown


def test_an_editor_has_the_terminal_and_ctrl_c_to_itself(desk: ToolDesk) -> None:
    script = desk.folder / "editor.py"
    script.write_text(
        "import pathlib, signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "print('in the editor', flush=True)\n"
        "signal.sigwait({signal.SIGINT})\n"  # until somebody types Ctrl-C
        'pathlib.Path(sys.argv[1]).write_text(\'{"a": 4, "b": 4}\')\n'
    )
    environment = {**desk.environment, "EDITOR": f"{sys.executable} {script}"}
    desk.upstream.script = [plays(calls(add(1, 1))), plays(says("Eight."))]
    with seated(ASK, desk.folder, environment) as seat:
        seat.answer(PROMPT, "e")
        seat.until("in the editor")
        seat.type(CTRL_C)
        assert seat.ended() == 0
    assert desk.traces == ["add 4 4"]


def test_piped_stdout_has_only_the_final_answer_and_approval_is_prompted(desk: ToolDesk) -> None:
    desk.upstream.script = [plays(reply(Text("Let me see."), add(1, 1))), plays(says("Two."))]
    with seated(ASK, desk.folder, desk.environment, is_piped=True) as seat:
        seat.answer(PROMPT, "y")
        assert seat.ended() == 0
    assert seat.out == b"Two."
    assert "Let me see." in seat.shown


def test_a_question_from_a_pipe_leaves_the_keyboard_to_the_person(desk: ToolDesk) -> None:
    desk.upstream.script = [plays(calls(add(1, 1))), plays(says("Two."))]
    (desk.folder / "question.txt").write_text("From a file.")
    words = ["ask", "--tools", "tools.py", "-"]
    with seated(words, desk.folder, desk.environment, stdin=desk.folder / "question.txt") as seat:
        seat.answer(PROMPT, "y")
        assert seat.ended() == 0
    assert desk.upstream.seen[0].json()["messages"][0]["content"] == "From a file."


def test_a_run_whose_process_was_killed_goes_on_and_no_tool_runs_twice(desk: ToolDesk) -> None:
    gate = desk.pipe()
    desk.upstream.script = [plays(calls(add(1, 1), wait("w2"))), plays(says("Over."))]
    with seated([*ASK, "--yes"], desk.folder, desk.environment) as seat:
        run = re.search(r"run (r_\w+)", seat.until("acme/m"))
        assert run
        with gate.open("w"):
            seat.process.kill()
            seat.process.wait()
    unattended = subprocess.run(
        [*PROGRAM, "resume", "--yes", run[1]], cwd=desk.folder, env=desk.environment, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, check=False, start_new_session=True,
    )  # fmt: skip
    assert (unattended.returncode, "no one is there to decide whether wait runs again" in unattended.stderr) == (
        2,
        True,
    )
    done = subprocess.run(
        [*PROGRAM, "resume", "--mid-flight", "skip", "--quiet", run[1]], cwd=desk.folder, env=desk.environment,
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, start_new_session=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "Over."), done.stderr
    assert desk.traces == ["add 1 1", "wait gate"]
