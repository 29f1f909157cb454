"""Runs from a command line without a terminal; those with one are in tests/e2e/test_runs_at_a_terminal.py."""

import asyncio
import json

import pytest

from sightline.agent.core.approval import Policy
from sightline.agent.core.limits import RunUsage
from sightline.agent.core.rounds import FinishedRun, Round, Why
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import RunnableCall
from sightline.agent.service.approvers import FunctionApprover
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.runner import NewRun
from sightline.app.configuration import configuration
from sightline.app.tools import open_runner, open_tools, parse_tools
from sightline.catalog.choose import choose
from sightline.catalog.compose import Prompt
from sightline.cli.program import main
from sightline.cli.run_control import _exit_code, summary
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.model.parts import Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Reply, Usage
from sightline.model.request import Message, Request
from tests.loop_stage import calls, reply, says
from tests.running_stage import begins, plays
from tests.tool_desk import KEY, ToolDesk, marks_in
from tests.upstream import says as answers

Captured = pytest.CaptureFixture[str]
ADD = ToolCall("c1", "add", '{"a": 2, "b": "3"}')


def test_a_model_uses_a_toolset_of_the_configuration(desk: ToolDesk, capsys: Captured) -> None:
    desk.upstream.script = [plays(calls(ADD)), plays(says("It is 5."))]
    assert main(["ask", "--tools", "tools.py", "--yes", "What is 2 + 3?"]) == 0
    out, err = capsys.readouterr()
    assert (out, desk.traces) == ("It is 5.", ["add 2 3"])
    assert err.splitlines()[0].startswith("run r_")
    assert "← add: 5" in err
    assert [tool["function"]["name"] for tool in desk.upstream.seen[0].json()["tools"]] == ["add", "wait"]


def test_without_an_approver_no_run_is_started(desk: ToolDesk, capsys: Captured) -> None:
    assert main(["ask", "--tools", "sums", "Add."]) == 2
    err = capsys.readouterr().err
    assert "error[usage]: no one is there to approve calls of wait" in err
    assert "hint: Add --yes, or name them under `allow`" in err
    assert main(["ask", "--tools", "sums", "--confirm", "Add."]) == 2
    assert "approve calls of add, wait" in capsys.readouterr().err
    assert (desk.upstream.seen, (desk.folder / "data").exists()) == ([], False)


def test_what_is_allowed_in_the_configuration_runs_unattended(desk: ToolDesk, capsys: Captured) -> None:
    file = desk.folder / "sightline.toml"
    file.write_text(file.read_text().replace('allow = ["add"]', 'allow = ["*"]'))
    desk.upstream.script = [plays(calls(ADD)), plays(says("5"))]
    assert main(["ask", "--tools", "sums", "--quiet", "Add."]) == 0
    assert capsys.readouterr() == ("5", "")


def test_schema_keywords_refused_by_the_provider_are_noted(desk: ToolDesk, capsys: Captured) -> None:
    marks_in(desk.folder)
    file = desk.folder / "sightline.toml"
    file.write_text(file.read_text().replace("[providers.acme]", '[providers.acme]\ndialect = "gemini"'))
    note = "note: uniqueItems at /properties/tags of the schema of marks__mark is not sent: gemini refuses the keyword"
    assert main(["ask", "--mcp", "marks.json", "--dry-run", "Mark."]) == 0
    out, err = capsys.readouterr()
    assert note in err.splitlines()
    assert "uniqueItems" not in out
    desk.upstream.script = [plays(says("Done."), "gemini")]
    assert main(["ask", "--mcp", "marks.json", "--yes", "--quiet", "Mark."]) == 0
    assert capsys.readouterr() == ("Done.", f"{note}\n")
    assert b"uniqueItems" not in desk.upstream.seen[0].body


def test_a_dry_run_shows_the_tools_and_sends_nothing(desk: ToolDesk, capsys: Captured) -> None:
    assert main(["ask", "--tools", "sums", "--builtin", "read_file", "--dry-run", "Add."]) == 0
    body = json.loads(capsys.readouterr().out)
    assert [tool["function"]["name"] for tool in body["tools"]] == ["add", "wait", "read_file"]
    assert (desk.upstream.seen, (desk.folder / "data").exists()) == ([], False)


def test_the_whole_run_as_json(desk: ToolDesk, capsys: Captured) -> None:
    desk.upstream.script = [plays(calls(ADD)), plays(says("5"))]
    assert main(["ask", "--tools", "tools.py", "--yes", "--json", "Add."]) == 0
    run = json.loads(capsys.readouterr().out)
    assert (run["state"], run["why"], run["rounds"][1]["text"]) == ("ended", "answered", "5")
    assert run["rounds"][0]["calls"][0]["ran"] == {"a": 2, "b": 3}
    assert run["origin"]["tools"]["python"] == [str(desk.folder / "tools.py")]


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (["--max-requests", "1"], "1 model requests"),
        (["--max-tokens-total", "12"], "12 tokens"),
        (["--max-cost", "0.00001"], "1e-05 US dollars"),
    ],
)
def test_a_limit_ends_a_run_with_1(desk: ToolDesk, capsys: Captured, words: list[str], limit: str) -> None:
    desk.upstream.script = [plays(calls(ADD))]
    assert main(["ask", "--tools", "tools.py", "--yes", *words, "Add."]) == 1
    assert f"the limit of {limit} is reached" in capsys.readouterr().err
    assert len(desk.upstream.seen) == 1


def test_a_limit_of_cost_needs_prices(desk: ToolDesk, capsys: Captured) -> None:
    file = desk.folder / "sightline.toml"
    file.write_text(file.read_text().replace("prices = { input = 1.0, output = 2.0 }", ""))
    assert main(["ask", "--tools", "tools.py", "--yes", "--max-cost", "1", "Add."]) == 2
    assert "the prices of this model are not known" in capsys.readouterr().err


def test_a_provider_that_fails_ends_a_run_with_3(desk: ToolDesk, capsys: Captured) -> None:
    desk.upstream.script = [plays(calls(ADD)), answers({"error": {"message": f"bad key {KEY}"}}, 401)]
    assert main(["ask", "--tools", "tools.py", "--yes", "Add."]) == 3
    err = capsys.readouterr().err
    assert "error[auth]: bad key" in err
    assert KEY not in err


def test_an_answer_that_breaks_off_is_shown_as_far_as_it_came(desk: ToolDesk, capsys: Captured) -> None:
    desk.upstream.script = [begins(says("It is probably 5."))]
    assert main(["ask", "--tools", "tools.py", "--yes", "Add."]) == 3
    assert capsys.readouterr().out == "It is probably 5."


def test_hooks_look_at_the_run_and_a_refusal_is_no_failure_of_the_provider(desk: ToolDesk, capsys: Captured) -> None:
    hooks = {"before_request": [{"command": "echo 'not today' >&2; exit 2"}]}
    (desk.folder / "hooks.json").write_text(json.dumps(hooks))
    assert main(["ask", "--tools", "tools.py", "--yes", "--hooks", "hooks.json", "Add."]) == 1
    assert "a hook refused a request: not today" in capsys.readouterr().err
    assert desk.upstream.seen == []


def test_unloadable_tool_file_is_reported_before_anything_is_sent(desk: ToolDesk, capsys: Captured) -> None:
    (desk.folder / "bad.py").write_text("import nothing_of_this_name\n")
    assert main(["ask", "--tools", "bad.py", "--yes", "Add."]) == 2
    assert "bad.py:1: ModuleNotFoundError" in capsys.readouterr().err
    assert main(["ask", "--tools", "nobody", "--yes", "Add."]) == 2
    assert "'nobody' is neither a toolset nor a file" in capsys.readouterr().err


def test_retries_are_noted_as_without_tools(desk: ToolDesk, capsys: Captured) -> None:
    desk.upstream.script = [answers({"error": {"message": "busy"}}, 503, [("Retry-After", "0")]), plays(says("Hello."))]
    assert main(["ask", "--tools", "tools.py", "--yes", "Greet me."]) == 0
    assert "note: attempt 2 after " in capsys.readouterr().err


def test_to_count_is_for_a_dry_run(desk: ToolDesk, capsys: Captured) -> None:
    assert main(["ask", "--tools", "tools.py", "--yes", "--count", "Add."]) == 2
    assert "--count cannot be used with tools" in capsys.readouterr().err


def test_model_without_tool_support_is_rejected_before_the_run(desk: ToolDesk, capsys: Captured) -> None:
    assert main(["ask", "-m", "local", "--tools", "tools.py", "--yes", "Add."]) == 2
    err = capsys.readouterr().err
    assert "it cannot call tools" in err
    assert "run r_" not in err
    assert main(["runs"]) == 0
    assert capsys.readouterr().err == "no runs on record\n"


@pytest.mark.parametrize("command", ["exit 1", "kill -9 $$", "sleep 60", "echo '{'", "./missing.sh"])
def test_with_yes_a_hook_that_fails_still_denies(desk: ToolDesk, capsys: Captured, command: str) -> None:
    hooks = {"before_tool": [{"command": command, "timeout_s": 0.3 if "sleep" in command else 30}]}
    (desk.folder / "hooks.json").write_text(json.dumps(hooks))
    desk.upstream.script = [plays(calls(ADD)), plays(says("I may not."))]
    assert main(["ask", "--tools", "tools.py", "--hooks", "hooks.json", "--yes", "What is 2 + 3?"]) == 0
    out, err = capsys.readouterr()
    assert (out, desk.traces) == ("I may not.", [])
    assert "note: the before_tool hook" in err
    assert "← add (denied by a hook): A hook of this run does not allow this call." in err
    told = desk.upstream.seen[1].json()["messages"][-1]["content"]
    assert told.endswith("A hook of this run does not allow this call. A check of this run could not be made.")


def test_what_a_model_says_when_it_refuses_is_printed(desk: ToolDesk, capsys: Captured) -> None:
    desk.upstream.script = [plays(reply(Refusal("I would rather not."), finish="refusal"))]
    assert main(["ask", "--tools", "tools.py", "--yes", "--quiet", "Do harm."]) == 0
    assert capsys.readouterr().out == "I would rather not."


def ended(why: Why, **more: object) -> FinishedRun:
    rounds = (Round(number=1, reply=reply(Text("So."))),)
    return FinishedRun(why=why, request=Request("m", ()), **{"rounds": rounds, **more})


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
    assert "about 2,400 tokens in, about 60 out, ~$0.5000" in summary(guessed, "acme/m")
    free = ended("answered", spent=RunUsage(seconds=1.0))
    assert summary(free, "local/m") == "local/m: 1 round, 0 tool calls, free, 1.00 s"
    unknown = ended("answered", spent=RunUsage(seconds=1.0, unmeasured=("cost",)))
    assert summary(unknown, "x/m") == "x/m: 1 round, 0 tool calls, cost unknown, 1.00 s"


RESUME_ADD = ToolCall("c1", "add", '{"a": 2, "b": 3}')


def left(desk: ToolDesk, origin: JsonObject | None = None, policy: Policy | None = None) -> str:
    """A run that was left when its first call was to be approved."""

    async def story() -> str:
        loaded = configuration(None)
        wanted = parse_tools(loaded, tools=["tools.py"])
        tools = await open_tools(loaded, wanted)
        choice = choose(loaded.catalog, "acme/m", has_key=loaded.has_key)
        async with open_runner(loaded, None) as runner:
            name = runner.make_id()

            def judge(_call: RunnableCall) -> bool:
                runner.leave(name)
                return True

            new = NewRun(
                Prompt((Message("user", (Text("Add."),)),)),
                choice,
                RunPlan(dialect=choice.dialect, policy=policy or Policy()),
                "ask",
                name,
                {"kind": "ask", **wanted.origin} if origin is None else origin,
            )
            with pytest.raises(Fault, match="was left"):
                await runner.run(new, RunParticipants(tools, FunctionApprover(judge)))
        await tools.close()
        return name

    desk.upstream.script = [plays(calls(RESUME_ADD)), plays(says("5"))]
    return asyncio.run(story())


def test_a_run_goes_on_with_its_tools_by_the_beginning_of_its_name(desk: ToolDesk, capsys: Captured) -> None:
    name = left(desk)
    assert desk.traces == []
    assert main(["resume", "--yes", "--json", name[:10]]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["rounds"][-1]["text"] == "5"
    assert f"run {name}: acme/m, 1 round so far" in err
    assert (desk.traces, len(desk.upstream.seen)) == (["add 2 3"], 2)
    assert main(["resume", "--yes", name]) == 2
    assert f"error[usage]: the run {name} has ended" in capsys.readouterr().err


def test_without_an_approver_the_run_stays_resumable(desk: ToolDesk, capsys: Captured) -> None:
    name = left(desk)
    assert main(["resume", name]) == 2
    assert "no one is there to approve calls of add, wait" in capsys.readouterr().err
    assert main(["resume", "--yes", "--quiet", name]) == 0
    assert capsys.readouterr() == ("5", "")


def test_resuming_an_unknown_run_is_reported(desk: ToolDesk, capsys: Captured) -> None:
    assert main(["resume", "r_nothing"]) == 2
    assert "there is no run 'r_nothing'" in capsys.readouterr().err


def test_a_run_of_a_program_is_taken_up_by_that_program(desk: ToolDesk, capsys: Captured) -> None:
    name = left(desk, origin={"kind": "library"})
    assert main(["resume", "--yes", name]) == 2
    assert "Its tools are functions of the program that started it" in capsys.readouterr().err
