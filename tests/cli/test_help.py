"""Help: every command is in a group, and each example can be typed as it stands."""

import shlex
import subprocess
import sys
from functools import partial
from importlib import import_module

import pytest

from sightline.cli.program import EXAMPLES, GROUPS, choices_of, commands_below, main, parser


def test_every_command_is_in_one_group() -> None:
    grouped = [name for _, names in GROUPS for name in names]
    assert sorted(grouped) == sorted(choices_of(parser()))


def test_every_command_has_an_example() -> None:
    ends = [path for path, command in commands_below(parser()) if not choices_of(command)]
    assert not set(ends) - set(EXAMPLES)


def test_what_every_command_does_can_be_imported() -> None:
    for path, command in commands_below(parser()):
        run = command.get_default("run")
        if isinstance(run, partial):
            module, function = run.args
            assert callable(getattr(import_module(module), function)), path


@pytest.mark.parametrize("example", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_is_understood(example: str) -> None:
    line = example.removeprefix('eval "$(').removesuffix(')"').removesuffix(" | source")
    assert parser().parse_args(shlex.split(line)[1:]).command


def test_the_help_of_a_command_ends_with_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["show", "--help"])
    assert capsys.readouterr().out.endswith("examples:\n  sightline show ex_01H8Z3 --as wire\n")


def test_the_help_loads_nothing_that_takes_long() -> None:
    """Every command begins with the declarations of all of them; with these, it took twice as long."""
    script = "import sys; from sightline.cli.program import parser; parser(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"asyncio", "importlib.metadata", "msgspec", "webbrowser"} & set(done.stdout.split())
