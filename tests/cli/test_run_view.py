from collections.abc import Sequence

import pytest

from sightline.agent.core.conversation import Amendment
from sightline.agent.core.facts import Remarked, RequestStarted, RunEnded, ToolFinished, ToolStarted
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.output import text_outcome
from sightline.agent.core.rounds import CallRecord, FinishedRun, Round
from sightline.agent.core.steps import Replied
from sightline.agent.service.shapes import CallResult, CallShown, LimitsShown, RoundShown, RunShown, SpentShown
from sightline.cli.run_control import RunView
from sightline.model.events import TextReceived, ThinkingReceived
from sightline.model.parts import Text, ToolCall
from sightline.model.request import Request
from sightline.tokens.ledger import Wait
from tests.loop_stage import reply

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


def test_in_a_pipe_the_last_words_are_the_answer_and_everything_else_is_told_beside_it(capsys: Captured) -> None:
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


def test_waits_and_the_progress_of_tools_are_told(capsys: Captured) -> None:
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


def test_a_reply_from_the_record_is_shown_although_nobody_heard_it(
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
