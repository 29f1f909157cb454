import pytest

from sightline.agent.core.limits import Reached, RunUsage
from sightline.agent.core.rounds import FinishedRun, Round, Why
from sightline.cli.run_control import _exit_code, summary
from sightline.errors import Code, Fault
from sightline.model.parts import Text, Thinking
from sightline.model.reply import Reply
from sightline.model.request import Request
from sightline.model.usage import Usage
from tests.loop_stage import reply


def ended(why: Why, **more: object) -> FinishedRun:
    rounds = (Round(number=1, reply=reply(Text("So."))),)
    return FinishedRun(why=why, request=Request("m", ()), **{"rounds": rounds, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("why", "code", "said"),
    [
        ("answered", 0, ""),
        ("refusal", 0, ""),
        ("length", 0, "note: the answer was truncated at its token limit; allow more with --max-tokens\n"),
        ("content_filter", 1, "note: the provider's filter stopped the answer\n"),
        ("limit", 1, "note: the run ended without an answer: a limit is reached\n"),
        ("cancelled", 1, "note: the run was stopped\n"),
    ],
)
def test_how_a_run_ended_is_its_exit_code(why: Why, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit_code(ended(why)) == code
    assert capsys.readouterr().err == said


def test_a_run_that_was_cut_before_any_text_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    cut = ended("length", rounds=(Round(number=1, reply=reply(Thinking("Well"), Text(" "), finish="length")),))
    assert _exit_code(cut) == 1
    assert "there is no answer: the limit of tokens was reached before any text" in capsys.readouterr().err
    assert _exit_code(ended("length", rounds=())) == 1


def test_a_limit_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit_code(ended("limit", reached=Reached("cost", 0.5, 0.6))) == 1
    assert "the limit of 0.5 US dollars is reached" in capsys.readouterr().err


def test_a_failure_of_a_provider_is_raised_and_a_hook_s_refusal_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    def failed(fault: Fault) -> FinishedRun:
        return ended("failed", rounds=(Round(number=1, reply=Reply(fault=fault)),))

    for fault in (Fault(Code.OVERLOADED, "busy", status=529), Fault(Code.PERMISSION, "no", status=403)):
        with pytest.raises(Fault) as caught:
            _exit_code(failed(fault))
        assert caught.value is fault
    assert _exit_code(failed(Fault(Code.PERMISSION, "a hook refused a request: no"))) == 1
    assert capsys.readouterr().err == "error[permission]: a hook refused a request: no\n"


def test_the_account_of_a_run_is_one_line() -> None:
    usage = Usage(input_tokens=1200, output_tokens=30)
    rounds = (Round(number=1, reply=Reply(), usage=usage), Round(number=2, reply=Reply(), usage=usage))
    told = ended("answered", rounds=rounds, spent=RunUsage(tool_calls=1, cost=0.5, seconds=2.5))
    assert summary(told, "acme/m") == "acme/m: 2 rounds, 1 tool call, 2,400 tokens in, 60 out, $0.5000, 2.50 s"
    guessed = ended("answered", rounds=rounds, spent=RunUsage(cost=0.5, seconds=2.5, is_estimated=True))
    assert "about 2,400 tokens in, about 60 out, cost unknown" in summary(guessed, "acme/m")
    free = ended("answered", spent=RunUsage(seconds=1.0))
    assert summary(free, "local/m") == "local/m: 1 round, 0 tool calls, free, 1.00 s"
    unknown = ended("answered", spent=RunUsage(seconds=1.0, unmeasured=("cost",)))
    assert summary(unknown, "x/m") == "x/m: 1 round, 0 tool calls, cost unknown, 1.00 s"
