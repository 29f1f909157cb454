import asyncio
import json
from functools import partial
from pathlib import Path
from threading import Event as Flag

import pytest

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import text_outcome
from sightline.agent.tools.hooks import EVENTS, UNJUDGED, Event, Hook, Hooks, HookSubject, HookVerdict, hooks_in
from sightline.errors import Code, Fault
from sightline.model.json import JsonObject
from sightline.model.parts import Text
from sightline.model.reply import Choice, Reply
from sightline.model.request import Message, Request
from tests.agent.tools.processes import environment


def test_a_file_has_commands_for_events() -> None:
    text = b'{"before_tool": [{"command": "./a", "tools": "run_*", "timeout_s": 5}, {"command": "./b"}], "stop": []}'
    assert hooks_in(text, "hooks.json") == (Hook("before_tool", "./a", "run_*", 5.0), Hook("before_tool", "./b"))
    assert hooks_in(b"{}", "hooks.json") == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{", "hooks.json: "),
        (b"[]", "hooks.json: Expected `object`"),
        (b'{"stop": [{}]}', "missing required field `command`"),
        (b'{"stop": [{"command": ""}]}', "length >= 1"),
        (b'{"stop": [{"command": "x", "tool": "y"}]}', "unknown field `tool`"),
        (b'{"stop": [{"command": "x", "timeout_s": 0}]}', "> 0"),
        (b'{"before_tools": [{"command": "x"}]}', "there is no event 'before_tools'"),
    ],
)
def test_one_that_cannot_be_read_says_what_to_write(text: bytes, words: str) -> None:
    with pytest.raises(Fault) as caught:
        hooks_in(text, "hooks.json")
    assert caught.value.code is Code.CONFIG
    assert words in caught.value.message
    assert caught.value.hint


def test_a_hook_has_a_name_for_people() -> None:
    def careful(given: object) -> None: ...

    assert Hook("stop", "./a").name == "the stop hook `./a`"
    assert Hook("stop", careful).name == "the stop hook `careful`"
    assert len(EVENTS) == 5


def test_a_moment_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Fault, match="there is no event 'after_lunch'") as caught:
        Hook("after_lunch", "true")
    assert (caught.value.code, "before_tool" in caught.value.hint) == (Code.CONFIG, True)


CALL = RunnableCall(key="1.1", id="a", name="run_command", arguments={"command": "ls"})
REPLY = Reply(choices=(Choice(parts=(Text("Done."),)),))
REQUEST = Request("m", (Message("user", (Text("Hi"),)),))


SUBJECTS: dict[Event, dict[str, HookSubject]] = {
    "before_request": {"request": REQUEST},
    "after_reply": {"reply": REPLY},
    "before_tool": {"call": CALL},
    "after_tool": {"call": CALL, "outcome": text_outcome("listed")},
    "stop": {"reply": REPLY, "is_active": True},
}


def hooks(*each: Hook, folder: Path = Path("/")) -> Hooks:
    return Hooks(each, folder=folder, environment=environment())


def verdict_on(event: Event, *does: object, timeout: float = 30.0, folder: Path = Path("/")) -> HookVerdict:
    """What these hooks say of an event."""
    asked = hooks(*(Hook(event, each, timeout=timeout) for each in does), folder=folder)
    return asyncio.run(asked.ask(event, "r", 1, **SUBJECTS[event]))


before_tool = partial(verdict_on, "before_tool")


# --- the rules of exit codes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("exit 0", HookVerdict()),
        ("echo be careful", HookVerdict(context="be careful")),
        ("""echo '{"decision":"allow"}'""", HookVerdict("allow")),
        ("""echo '{"decision":"deny","reason":"no"}'""", HookVerdict("deny", "no")),
        ("""echo '{"decision":"block","reason":"no"}'""", HookVerdict("deny", "no")),
        ("""echo '{"arguments":{"command":"ls -l"},"context":"c"}'""", HookVerdict("", "", {"command": "ls -l"}, "c")),
        ("""echo '{"stop":""}'""", HookVerdict(stop="")),
        ("echo not there >&2; exit 2", HookVerdict("deny", "not there")),
        ("echo also so; exit 2", HookVerdict("deny", "also so")),
    ],
)
def test_what_an_exit_code_means(command: str, verdict: HookVerdict) -> None:
    assert before_tool(command) == verdict


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo '{'", "what it printed is no JSON"),
        ("""echo '{"decison":"deny"}'""", "its answer is not understood: Object contains unknown field `decison`"),
        ("""echo '{"decision":"perhaps"}'""", "its answer is not understood"),
        ("kill -9 $$", "ended by signal 9"),
        ("sh -c 'kill -9 $$'; exit $?", "exit code 137"),
        ("a\0b", "embedded null byte"),
        ("echo sk-inside-the-hook >&2; exit 1", "exit code 1: sk-inside-the-hook"),
        ("python3 -c 'raise SystemExit(3)'", "exit code 3"),
        ("no-such-program-at-all", "exit code 127"),
        ("/etc/passwd", "exit code 126"),
    ],
)
def test_failing_hook_denies_the_call_and_warns_with_the_reason(command: str, words: str) -> None:
    verdict = before_tool(command)
    assert (verdict.decision, verdict.reason, verdict.has_failed) == ("deny", UNJUDGED, True)
    assert words in verdict.warnings[0]


def test_a_hook_that_takes_too_long_is_stopped_and_denies() -> None:
    verdict = before_tool("exec sleep 600", timeout=0.05)
    assert (verdict.decision, verdict.has_failed) == ("deny", True)
    assert "stopped: it took too long" in verdict.warnings[0]


@pytest.mark.parametrize("event", ["before_request", "after_reply"])
def test_a_failing_hook_refuses_a_request_and_a_reply_too(tmp_path: Path, event: Event) -> None:
    warnings = (f"the {event} hook `true`: No such file or directory",)
    verdict = HookVerdict("deny", UNJUDGED, warnings=warnings, has_failed=True)
    assert verdict_on(event, "true", folder=tmp_path / "gone") == verdict


@pytest.mark.parametrize("event", ["after_tool", "stop"])
def test_a_failing_hook_after_a_tool_or_at_the_end_is_only_reported(event: Event) -> None:
    verdict = verdict_on(event, "exit 1")
    assert (verdict.decision, verdict.has_failed, len(verdict.warnings)) == ("", True, 1)


# --- several --------------------------------------------------------------------------------------


def test_the_strictest_holds_and_of_changes_the_last() -> None:
    verdict = before_tool(
        """echo '{"decision":"allow","arguments":{"command":"one"},"context":"first"}'""",
        """echo '{"decision":"ask","arguments":{"command":"two"},"context":"second"}'""",
    )
    assert (verdict.decision, verdict.arguments, verdict.context) == ("ask", {"command": "two"}, "first\nsecond")
    assert before_tool("echo no >&2; exit 2", "echo no >&2; exit 2", """echo '{"decision":"ask"}'""").reason == "no"


def test_each_sees_what_those_before_it_have_changed() -> None:
    changed = """echo '{"arguments":{"command":"changed"}}'"""
    assert '"command":"changed"' in before_tool(changed, "cat | tr '{' '('").context


def test_hooks_after_a_stop_are_not_called() -> None:
    assert before_tool("""echo '{"stop":"enough"}'""", "echo more").context == ""


def test_only_hooks_matching_event_and_tool_are_called() -> None:
    asked = hooks(
        Hook("before_tool", "echo a", tools="read_*"),
        Hook("before_tool", "echo b", tools="run_*"),
        Hook("stop", "echo c"),
    )
    assert asyncio.run(asked.ask("before_tool", "r", 1, call=CALL)).context == "b"


# --- the five moments -----------------------------------------------------------------------------


async def test_every_event_is_passed_to_hooks_as_json() -> None:
    heard: list[JsonObject] = []
    asked = hooks(*(Hook(event, heard.append) for event in SUBJECTS))
    for event, subjects in SUBJECTS.items():
        await asked.ask(event, "r1", 1, **subjects)
    assert [each["event"] for each in heard] == list(SUBJECTS)
    assert all((each["run"], each["round"]) == ("r1", 1) for each in heard)
    request, reply, call, after, stop = heard
    assert request["request"]["messages"][0]["parts"][0]["text"] == "Hi"
    assert reply["reply"] == stop["reply"]
    assert stop["is_active"] is True
    assert call["call"]["arguments"] == {"command": "ls"}
    assert after["outcome"]["parts"][0]["text"] == "listed"


def test_a_command_reads_the_same(tmp_path: Path) -> None:
    asked = hooks(Hook("stop", "cat > seen.json"), folder=tmp_path)
    asyncio.run(asked.ask("stop", "r1", 2, reply=REPLY, is_active=False))
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert (seen["event"], seen["round"], seen["is_active"]) == ("stop", 2, False)


def test_the_end_is_refused_with_a_reason_or_without() -> None:
    assert verdict_on("stop", "echo run the tests first >&2; exit 2") == HookVerdict("deny", "run the tests first")
    assert verdict_on("stop", "exit 2") == HookVerdict("deny")


def test_to_refuse_after_a_tool_takes_a_reason() -> None:
    verdict = verdict_on("after_tool", "exit 2")
    assert verdict.decision == ""
    assert "gives no reason" in verdict.warnings[0]


def test_arguments_are_for_calls() -> None:
    verdict = verdict_on("stop", """echo '{"arguments":{}}'""")
    assert verdict.arguments is None
    assert "has no effect here" in verdict.warnings[0]


# --- functions ------------------------------------------------------------------------------------


def test_functions_of_both_kinds_answer_like_commands() -> None:
    async def deny(given: JsonObject) -> JsonObject:
        given.clear()
        return {"decision": "deny", "reason": "not today"}

    def note(given: JsonObject) -> str:
        return str(given["event"])

    assert before_tool(deny, note) == HookVerdict("deny", "not today", context="before_tool")


def test_a_function_that_raises_hangs_or_answers_nonsense_is_reported() -> None:
    released = Flag()

    def broken(given: JsonObject) -> None:
        raise KeyError("x")

    def stuck(given: JsonObject) -> None:
        released.wait()

    def odd(given: JsonObject) -> object:
        return 7

    warnings = ("the before_tool hook `broken`: KeyError: 'x'",)
    assert before_tool(broken) == HookVerdict("deny", UNJUDGED, warnings=warnings, has_failed=True)
    assert before_tool(stuck, timeout=0.01).warnings == ("the before_tool hook `stuck`: it took too long",)
    released.set()
    assert "not understood" in before_tool(odd).warnings[0]


async def test_closed_hooks_run_no_command() -> None:
    asked = hooks(Hook("before_tool", "echo fine"))
    await asked.close()
    verdict = await asked.ask("before_tool", "r", 1, call=CALL)
    assert (verdict.decision, verdict.has_failed) == ("deny", True)
