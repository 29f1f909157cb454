import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Fault
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.command_target import command_of
from sightline.evals.service.processes import (
    LONGEST_VALUE,
    NAMES,
    CommandLine,
    check_command,
    fill_command,
    places_of,
)
from tests.eval_stage import EvalStage, on_stage, open_evals, verdicts
from tests.upstream import Upstream, answer

NASTY = 'it\'s "$(touch pwned)" `id` $HOME ${X} \\ ; rm -rf * | & > out\nsecond line {PROMPT_FILE} é'
VALUES = {**dict.fromkeys(NAMES, ""), "PROMPT": NASTY, "EVAL_ID": "case; id", "ATTEMPT": "2"}
ECHO = "printf '%s\\0'"


def output(line: CommandLine, folder: Path) -> list[str]:
    """The arguments that a program got."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", **line.environment}
    done = subprocess.run(line.argv, env=environment, cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize(
    ("written", "got"),
    [
        ("{PROMPT}", [NASTY]),
        ('"{PROMPT}"', [NASTY]),
        ("'{PROMPT}'", [NASTY]),
        ("--prompt={PROMPT}", [f"--prompt={NASTY}"]),
        ('"as said: {PROMPT}!"', [f"as said: {NASTY}!"]),
        ("'as said: {PROMPT}!'", [f"as said: {NASTY}!"]),
        ("a\\ b {ATTEMPT} {EVAL_ID}", ["a b", "2", "case; id"]),
        ("-m {ATTEMPT} ${PROMPT}", ["-m", "2"]),
        ('"\\"{ATTEMPT}\\""', ['"2"']),
    ],
)
def test_no_word_of_a_question_is_shell_code_wherever_its_place_is(
    written: str, got: list[str], tmp_path: Path
) -> None:
    assert output(fill_command(f"{ECHO} {written}", VALUES), tmp_path) == got
    assert list(tmp_path.iterdir()) == []


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40))
def test_any_text_arrives_as_it_is(text: str) -> None:
    line = fill_command(f"{ECHO} {{PROMPT}} \"{{PROMPT}}\" '{{PROMPT}}'", {**VALUES, "PROMPT": text})
    assert output(line, Path("/")) == [text] * 3


def test_files_are_words_of_their_own_in_the_form_that_is_wanted(tmp_path: Path) -> None:
    files = ["/a b/$(id).md", "/c/d.txt"]
    assert output(fill_command(f"{ECHO} {{FILES}} x", VALUES, files), tmp_path) == [*files, "x"]
    line = fill_command(f"{ECHO} {{FILES}}", VALUES, files, "--file {path} --name={basename}")
    assert output(line, tmp_path) == ["--file", files[0], "--name=$(id).md", "--file", files[1], "--name=d.txt"]
    assert fill_command(["run", "{FILES}"], VALUES, files, "-f {path}").argv == ("run", "-f", files[0], "-f", files[1])


def test_words_for_no_shell_are_filled_as_they_are() -> None:
    line = fill_command(["agent", "-c", "say {PROMPT} {ATTEMPT}"], VALUES)
    assert line == CommandLine(("agent", "-c", f"say {NASTY} 2"))
    with pytest.raises(Fault, match="is only a part of"):
        check_command(["agent", "--files={FILES}"])


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("sh -c {PROMPT}", "part of a program that sh runs"),
        ('bash -lc "agent {PROMPT}"', "part of a program that bash runs"),
        ("python3 -c 'print(\"{PROMPT}\")'", "part of a program that python3 runs"),
        ("node -e {PROMPT}", "part of a program"),
        ("eval agent {PROMPT}", "part of a program that eval runs"),
        ("sh -c x{a}{PROMPT}", "part of a program that sh runs"),
        ("{ A=1 sudo eval agent {PROMPT}; }", "part of a program that eval runs"),
        ("true && /usr/bin/ssh host agent {PROMPT}", "part of a program that /usr/bin/ssh runs"),
        ("agent $(cat {PROMPT_FILE}) {PROMPT}", "a command in the command"),
        ('agent "`cat x` {PROMPT}"', "a command in the command"),
        ("agent <<END\n{PROMPT}\nEND", "here-document"),
        ("agent \\{PROMPT}", "a backslash is before a placeholder"),
        ("agent '{PROMPT}", "a quote in it is not closed"),
        ('agent "{FILES}"', "not a word of its own"),
        ("agent --f={FILES}", "not a word of its own"),
    ],
)
def test_a_command_that_could_run_words_of_the_question_is_refused(command: str, why: str) -> None:
    with pytest.raises(Fault, match=why) as caught:
        check_command(command)
    assert caught.value.hint


@pytest.mark.parametrize(
    "command",
    ["sh -c 'agent \"$1\"' x {PROMPT}", "ssh host agent < {PROMPT_FILE}", "echo $(date)", "a | b; c {PROMPT}"],
)
def test_other_commands_are_fine(command: str) -> None:
    check_command(command)


def test_what_no_command_line_can_hold_is_refused() -> None:
    with pytest.raises(Fault, match="zero byte"):
        fill_command("agent {PROMPT}", {**VALUES, "PROMPT": "a\0b"})
    with pytest.raises(Fault, match="too long for a command line") as caught:
        fill_command(["agent", "{PROMPT}"], {**VALUES, "PROMPT": "x" * (LONGEST_VALUE + 1)})
    assert "{PROMPT_FILE}" in caught.value.hint
    fill_command("agent {PROMPT_FILE}", {**VALUES, "PROMPT": "a\0b"})


def test_the_places_of_a_command_are_known() -> None:
    assert places_of("a {PROMPT} {OUTPUT_FILE} {other}") == {"PROMPT", "OUTPUT_FILE"}
    assert places_of(["a", "{FILES}"]) == {"FILES"}


AGENT = """#!/bin/sh
for word in "$@"; do echo "word: $word"; done
"""


def cli(command: str | tuple[str, ...] = "", **more: object) -> TargetSpec:
    return TargetSpec(name="agent", cli=CommandSpec(command=command, **more))  # type: ignore[arg-type]


def program(folder: Path, text: str, name: str = "agent.sh") -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@on_stage
async def test_a_program_gets_the_question_and_its_output_is_the_answer(stage: EvalStage, upstream: Upstream) -> None:
    program(stage.root, AGENT)
    standing = await stage.run(targets=(cli("./agent.sh {PROMPT} Paris Rome {EVAL_ID} {ATTEMPT}"),))
    assert verdicts(standing) == {"france": "pass", "italy": "pass", "spain": "fail"}
    said = standing.results[0].observation
    assert said.text.splitlines() == [
        "word: What is the capital of France?", "word: Paris", "word: Rome", "word: france", "word: 1",
    ]  # fmt: skip
    assert (said.usage, said.cost, upstream.seen) == (None, None, [])
    assert said.seconds is not None


@on_stage
async def test_prompt_and_output_go_by_files_that_are_gone_afterwards(stage: EvalStage) -> None:
    text = """
tests:
  - id: a
    input: [{role: user, content: [{type: file, value: notes.md}, {type: text, value: Hi}]}]
    assertions:
      - {type: contains, value: "7 notes.md"}
      - {type: tool-trajectory, mode: exact, expected: [{tool: look}]}
      - {type: cost, budget: 1}
"""
    agent = """#!/bin/sh
test -s "$1" || exit 9
echo "$1" > seen
printf '{"text": "7 %s", "cost_usd": 0.5, "output": [{"role": "assistant", "content": "",
  "tool_calls": [{"tool": "look", "input": {}}]}]}' "$(basename "$3")" > "$2"
"""
    program(stage.root, agent)
    (stage.root / "notes.md").write_text("x")
    (result,) = (await stage.run(text, (cli(("./agent.sh", "{PROMPT_FILE}", "{OUTPUT_FILE}", "{FILES}")),))).results
    assert (result.status, result.score.verdict) == ("ok", "pass"), result
    assert stage.told[-1].cost == 0.5
    assert not os.path.exists((stage.root / "seen").read_text().strip())  # noqa: ASYNC240, PTH110


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo it broke >&2; exit 4", "the command ended with 4: it broke"),
        ("true {OUTPUT_FILE}", "has not written {OUTPUT_FILE}"),
        ("no-such-program", "127"),
        (("no-such-program",), "cannot be run"),
    ],
)
@on_stage
async def test_a_program_that_fails_is_an_error_of_the_case(stage: EvalStage, command: str, words: str) -> None:
    (result, *_) = (await stage.run(targets=(cli(command),), cases=("france",))).results
    assert (result.status, result.score.verdict) == ("execution_error", "not_graded")
    assert words in result.observation.error


@on_stage
async def test_a_program_that_takes_too_long_is_ended(stage: EvalStage) -> None:
    (result, *_) = (await stage.run(targets=(cli("sleep 600", timeout_s=0.3),), cases=("france",))).results
    assert (result.status, result.observation.error_code) == ("execution_error", "timeout_idle")


async def test_no_program_gets_a_key_unless_it_is_named(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "ACME_KEY": "the-key", "OTHER": "word"}
    async with open_evals(tmp_path, environment=environment, secrets=frozenset({"ACME_KEY"})) as (stage, _):
        command = "echo ${ACME_KEY:-none} ${OTHER:-none}"
        for number, (env, words) in enumerate([((), "none word"), (("ACME_KEY", "NOT_SET"), "the-key word")]):
            (result, *_) = (
                await stage.run(targets=(cli(command, env=env),), cases=("france",), run=f"e_{number}")
            ).results
            assert result.observation.text == words


def test_built_in_command_templates_are_non_interactive() -> None:
    codex = command_of(CommandSpec(template="codex", model="gpt-5.5"))
    assert codex == ("codex", "exec", "--json", "--skip-git-repo-check", "--model", "gpt-5.5", "-")
    claude = command_of(CommandSpec(template="claude"))
    assert claude == ("claude", "-p", "--output-format", "stream-json", "--verbose")


async def test_a_ready_command_reads_the_question_and_is_read(tmp_path: Path) -> None:
    end = {"type": "result", "is_error": False, "result": "Paris", "total_cost_usd": 0.25}
    fake = f"#!/bin/sh\ncat > question\nif test -f broken; then exit 7; fi\necho '{json.dumps(end)}'\n"

    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    program(bin_folder, fake, "claude")
    async with open_evals(tmp_path, environment={"PATH": f"{bin_folder}:/usr/bin:/bin"}) as (stage, _):
        spec = TargetSpec(name="claude", cli=CommandSpec(template="claude"))
        (result, *_) = (await stage.run(targets=(spec,), cases=("france",))).results
        assert (result.status, result.observation.text, result.observation.cost) == ("ok", "Paris", 0.25)
        assert (stage.root / "question").read_text() == "What is the capital of France?"
        (stage.root / "broken").touch()
        (result, *_) = (await stage.run(targets=(spec,), cases=("france",), run="e_2")).results
        assert "it ended with 7" in result.observation.error


@on_stage
async def test_a_healthcheck_may_run_in_a_folder_of_its_own(stage: EvalStage) -> None:
    (stage.root / "checks").mkdir()
    (stage.root / "checks" / "here").touch()
    for run, (folder, status) in enumerate([("checks", "ok"), (None, "")]):
        target = cli("echo Paris", healthcheck_command="test -e here", healthcheck_cwd=folder)
        if status:
            assert (await stage.run(targets=(target,), run=f"e_{run}")).results[0].status == status
        else:
            with pytest.raises(Fault, match="its healthcheck ended with 1"):
                await stage.run(targets=(target,), run=f"e_{run}")


@on_stage
async def test_a_target_whose_healthcheck_fails_is_refused_before_anything_is_run(
    stage: EvalStage, upstream: Upstream
) -> None:
    async def story(stage: EvalStage, upstream: Upstream) -> None:
        upstream.script = [answer(503, b""), answer(200, b"ok")]
        for spec, words in (
            (cli("true", healthcheck_command="echo down >&2; exit 1"), "its healthcheck ended with 1: down"),
            (cli("true", healthcheck_url=f"{upstream.url}/health"), "answered with status 503"),
            (cli("true", healthcheck_url="http://127.0.0.1:1/"), "cannot be used: its healthcheck has no answer: 127"),
            (cli("true", healthcheck_url="nonsense"), "cannot be used: its healthcheck has no answer: the URL"),
            (cli("true", cwd="nowhere"), "which is not a folder"),
            (cli("true", cwd=".."), "which is not a folder"),
            (cli("sh -c {PROMPT}"), "cannot be run safely"),
        ):
            with pytest.raises(Fault, match=words):
                await stage.run(targets=(spec,))
        assert await stage.stage.store.logbook.logs("eval:") == []
        well = cli("echo Paris", healthcheck_command="true", healthcheck_url=f"{upstream.url}/health")
        assert len((await stage.run(targets=(well,))).results) == 3

    again = EvalStage(stage.stage, stage.root, client=stage.stage.client)
    await story(again, upstream)
    with pytest.raises(Fault, match="nothing to fetch it with"):
        await stage.run(targets=(cli("true", healthcheck_url="http://127.0.0.1:1/"),), run="e_9")
