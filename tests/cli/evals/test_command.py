import gc

import pytest

from sightline.cli.program import main, parser


def test_every_command_has_its_module() -> None:
    words = {
        "run": ["s.yaml"],
        "validate": ["s.yaml"],
        "preview": ["s.yaml", "a"],
        "show": [],
        "compare": ["a", "b"],
        "import": ["p.yaml"],
        "make": ["x_1"],
    }
    for name, more in words.items():
        arguments = parser().parse_args(["eval", name, *more])
        assert (arguments.eval_command, callable(arguments.run)) == (name, True)


def test_eval_alone_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval"]) == 2
    assert "COMMAND" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["eval", "run", "--help"])
    assert "--rerun-failed RUN" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--cache", "--no-cache"], ["--resume", "a", "--dry-run"], ["--trials", "0"]])
def test_what_excludes_itself_is_refused(words: list[str]) -> None:
    assert main(["eval", "run", "s.yaml", *words]) == 2


def test_circular_garbage_is_looked_for_as_often_as_before_once_a_command_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, meanwhile = gc.get_threshold(), list[int]()

    def run(_arguments: object) -> int:
        meanwhile.append(gc.get_threshold()[0])
        return 0

    monkeypatch.setattr("sightline.cli.evals.suites.validate", run)
    assert main(["eval", "validate", "s.yaml"]) == 0
    assert meanwhile[0] > before[0]
    assert gc.get_threshold() == before
