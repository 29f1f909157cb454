import json
from collections.abc import Sequence

import pytest

from sightline.agent.core.conversation import Amendment
from sightline.agent.core.facts import Remarked, RequestStarted, RunEnded, ToolFinished, ToolStarted
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.rounds import CallRecord, FinishedRun, Round
from sightline.agent.core.steps import Replied
from sightline.agent.core.tool import ToolOutcome, text_outcome
from sightline.agent.service.run_view import CallResult, CallShown, LimitsShown, RoundShown, RunShown, SpentShown
from sightline.cli.program import main
from sightline.cli.run_control import RunView, call_line, clip, fold, record_lines, result_lines
from sightline.model.events import TextReceived, ThinkingReceived
from sightline.model.parts import Image, Inline, Text, ToolCall
from sightline.model.request import Request
from sightline.tokens.ledger import Wait
from tests.loop_stage import reply, says
from tests.running_stage import plays
from tests.tool_desk import ToolDesk
from tests.upstream import says as answers

PICTURE = Image(Inline("image/png", "AAAA"))


def test_a_call_is_one_line_and_the_cut_is_stated() -> None:
    assert call_line("add", {"a": 1, "text": "x\ny"}) == '→ add {"a":1,"text":"x\\ny"}'
    assert call_line("shell", "ls\n  -l") == "→ shell ls -l"
    assert call_line("shell", "") == "→ shell"
    assert call_line("shell", "x" * 1200).endswith("… 1,040 more characters")


def test_a_result_is_a_few_lines_and_the_cut_is_stated() -> None:
    assert result_lines("add", text_outcome("5")) == "← add: 5"
    assert result_lines("add", text_outcome("odd", is_error=True)) == "← add (error): odd"
    assert result_lines("add", None) == "← add"
    assert result_lines("ls", text_outcome("1\n2\n3\n4\n5\n6\n")) == "← ls: 1\n  2\n  3\n  4\n  … 2 more lines"
    assert fold("1\n2\n3\n4\n5").endswith("… 1 more line")


def test_what_is_not_text_is_counted() -> None:
    assert result_lines("f", ToolOutcome((Text("see"), PICTURE))) == "← f: see\n  [1 part that is not text]"
    assert result_lines("f", ToolOutcome((PICTURE, PICTURE))) == "← f: [2 parts that are not text]"
    assert result_lines("f", ToolOutcome(structured={"a": 1})) == '← f: {"a":1}'


def test_what_did_not_run_says_why() -> None:
    record = CallRecord(
        key="1.1", id="a", name="add", arguments="{}", fate="denied", outcome=text_outcome("no", is_error=True)
    )
    assert record_lines(record) == "← add (denied): no"
    cut = CallRecord(key="1.1", id="a", name="add", arguments="{}", fate="cut")
    assert record_lines(cut) == "← add (not run, the reply was truncated)"


def test_a_short_line_stays_as_it_is() -> None:
    assert clip("abc", 3) == "abc"
    assert clip("abcd", 3) == "abc… 1 more characters"


Captured = pytest.CaptureFixture[str]
CALLS = (ToolCall("a", "add", '{"a": 1}'), ToolCall("b", "rm", "{}"))
REPLY = reply(Text("Let me see."), *CALLS)
DENIED = CallRecord(
    key="1.2", id="b", name="rm", arguments="{}", fate="denied", outcome=text_outcome("No.", is_error=True)
)
ROUND = Round(
    number=1,
    reply=REPLY,
    calls=(
        CallRecord(key="1.1", id="a", name="add", arguments='{"a": 1}', fate="ran", outcome=text_outcome("2")),
        DENIED,
    ),
    amendments=(Amendment("orphan_result", "a result", "its call is gone"),),
)


def view(rounds: Sequence[Round] = (ROUND,), *, is_quiet: bool = False, is_silent: bool = False) -> RunView:
    return RunView(lambda: rounds, is_quiet=is_quiet, is_silent=is_silent)


def played(view: RunView) -> None:
    view.on_fact(RequestStarted(1))
    view.on_event(ThinkingReceived(0, "hm"))
    view.on_event(TextReceived(1, "Let me see."))
    view.on_fact(Replied(REPLY))
    view.on_fact(ToolStarted("1.1"))
    view.on_fact(ToolFinished("1.1", text_outcome("2")))
    view.on_fact(Remarked("a hook failed"))
    view.on_fact(RequestStarted(2))
    view.on_event(TextReceived(0, "Done."))
    view.on_fact(Replied(reply(Text("Done."))))
    view.on_fact(RunEnded("answered"))
    view.show_ending(
        FinishedRun(
            why="answered", request=Request("m", ()), rounds=(ROUND, Round(number=2, reply=reply(Text("Done."))))
        )
    )
    view.finish()


def test_in_a_pipe_only_the_answer_goes_to_stdout_and_the_rest_to_stderr(capsys: Captured) -> None:
    played(view())
    out, err = capsys.readouterr()
    assert out == "Done."
    assert err.splitlines() == [
        "round 1",
        "Let me see.",
        '→ add {"a": 1}',
        "→ rm {}",
        "← add: 2",
        "note: a hook failed",
        "← rm (denied): No.",
        "note: a result: its call is gone",
        "round 2",
    ]


def test_waits_and_tool_progress_are_shown(capsys: Captured) -> None:
    for shown in (view(), view(is_quiet=True)):
        shown.on_fact(RequestStarted(1))
        shown.on_pause(Wait(2.0, "used_up", "rpm", 5))
        shown.on_fact(Replied(REPLY))
        shown.on_progress("1.1", "half\nway")
    assert capsys.readouterr().err.splitlines() == [
        "round 1",
        "note: waiting 2.0 s: the limit of rpm is used up",
        "Let me see.",
        '→ add {"a": 1}',
        "→ rm {}",
        "· add: half way",
        "note: waiting 2.0 s: the limit of rpm is used up",
    ]


def test_quiet_leaves_notes_and_silent_leaves_the_answer_to_others(capsys: Captured) -> None:
    played(view(is_quiet=True))
    assert capsys.readouterr() == ("Done.", "note: a hook failed\nnote: a result: its call is gone\n")
    played(view(is_silent=True))
    assert capsys.readouterr().out == ""


def test_on_a_terminal_words_are_shown_as_they_come_and_once(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.cli.run_control.is_terminal", lambda _stream: True)
    monkeypatch.setattr("sightline.cli.answer.is_terminal", lambda stream: stream is not None)
    played(view())
    out, err = capsys.readouterr()
    assert out == "Let me see.\nDone.\n"
    assert "Let me see." not in err


def test_reply_from_the_record_is_shown_although_it_was_not_streamed(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.cli.run_control.is_terminal", lambda _stream: True)
    shown = view(())
    shown.on_fact(Replied(reply(Text("Done."))))
    shown.show_ending(
        FinishedRun(why="answered", request=Request("m", ()), rounds=(Round(number=1, reply=reply(Text("Done."))),))
    )
    assert capsys.readouterr().out == "Done."


def test_what_tools_answer_cannot_reach_into_the_terminal(capsys: Captured) -> None:
    shown = view(())
    shown.on_fact(ToolFinished("1.1", text_outcome("\x1b]0;owned\x07 \x1b[2J\u202e done")))
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\\x1b[2J" in err


def test_a_run_without_rounds_has_no_answer(capsys: Captured) -> None:
    view(()).show_ending(FinishedRun(why="limit", request=Request("m", ())))
    assert capsys.readouterr().out == ""


def test_a_run_that_is_taken_up_shows_what_is_new(capsys: Captured) -> None:
    result = CallResult(text="2", is_error=False, structured=None, media=0)
    calls = (
        CallShown(key="1.1", id="a", name="add", arguments="{}", fate="ran", result=result),
        CallShown(key="1.2", id="b", name="rm", arguments="{}"),
    )
    spent = SpentShown(requests=1, tool_calls=1, tokens=0, cost=0.0, seconds=0.0, unmeasured=())
    run = RunShown(
        id="r_1", version=1, at=0.0, title="", state="interrupted", why="", reason=None, provider="acme", model="m",
        limits=LimitsShown(**{name: getattr(RunLimits(), name) for name in LimitsShown.__struct_fields__}),
        reached=None,
        rounds=(RoundShown(number=1, exchange="x_1", calls=calls),), pending=None, is_stepping=False, origin={},
        spent=spent, amendments=(), notes=(),
    )  # fmt: skip
    shown = view()
    shown.resume(run)
    shown.on_fact(ToolFinished("1.2", text_outcome("gone")))
    shown.on_fact(RequestStarted(2))
    assert capsys.readouterr().err.splitlines() == ["← rm: gone", "note: a result: its call is gone", "round 2"]


ADD = ToolCall("c1", "add", '{"a": 2, "b": 3}')


def test_runs_are_listed_newest_first_and_shown_round_by_round(desk: ToolDesk, capsys: Captured) -> None:
    unknown = ToolCall("c2", "subtract", "{}")
    desk.upstream.script = [
        plays(says("Hello.")),
        plays(reply(Text("Let me see."), ADD, unknown)),
        answers({"error": {"message": "no"}}, 400),
    ]
    assert main(["ask", "--tools", "tools.py", "--yes", "Greet me."]) == 0
    assert main(["ask", "--tools", "tools.py", "--yes", "Add\nthem."]) == 3
    capsys.readouterr()
    assert main(["runs"]) == 0
    heading, newest, oldest = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["TIME", "RUN", "STATE"]
    assert "failed" in newest
    assert newest.endswith("Add them.")
    assert "answered" in oldest
    assert main(["runs", "--json", "--limit", "1"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    run = json.loads(line)["id"]
    assert main(["runs", run[:-2]]) == 0
    told = capsys.readouterr().out
    assert f"run       {run}\n" in told
    assert "state     ended failed\n" in told
    assert "Let me see.\n→ add" in told
    assert "← add: 5\n" in told
    assert "← subtract (refused): " in told
    assert "error[invalid_request]: no\n" in told
    assert main(["runs", "--json", run]) == 0
    assert json.loads(capsys.readouterr().out)["rounds"][0]["calls"][0]["name"] == "add"


def test_without_runs_there_is_nothing_to_list(desk: ToolDesk, capsys: Captured) -> None:
    assert main(["runs"]) == 0
    assert capsys.readouterr() == ("", "no runs on record\n")
    assert main(["runs", "--json"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_name_must_mean_one_run(desk: ToolDesk, capsys: Captured) -> None:
    desk.upstream.script = [plays(says("Hello."))]
    for _ in range(2):
        assert main(["ask", "--tools", "tools.py", "--yes", "--quiet", "Greet me."]) == 0
    capsys.readouterr()
    assert main(["runs", "r_"]) == 2
    assert "error[usage]: 2 runs begin with 'r_'\nhint: `sightline runs` lists them.\n" in capsys.readouterr().err
    assert main(["runs", "x"]) == 2
    assert "there is no run 'x'" in capsys.readouterr().err
