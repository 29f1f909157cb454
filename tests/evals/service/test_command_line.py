import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Fault
from sightline.evals.service.command_target import LONGEST_VALUE, NAMES, CommandLine, check, fill_command, places_of

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
        check(["agent", "--files={FILES}"])


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
        ("agent \\{PROMPT}", "a backslash stands before a place"),
        ("agent '{PROMPT}", "a quote in it is not closed"),
        ('agent "{FILES}"', "not a word of its own"),
        ("agent --f={FILES}", "not a word of its own"),
    ],
)
def test_a_command_that_could_run_words_of_the_question_is_refused(command: str, why: str) -> None:
    with pytest.raises(Fault, match=why) as caught:
        check(command)
    assert caught.value.hint


@pytest.mark.parametrize(
    "command",
    ["sh -c 'agent \"$1\"' x {PROMPT}", "ssh host agent < {PROMPT_FILE}", "echo $(date)", "a | b; c {PROMPT}"],
)
def test_other_commands_are_fine(command: str) -> None:
    check(command)


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
