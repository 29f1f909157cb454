from pathlib import Path

import pytest

from sightline.cli.program import main
from tests.cli.recorded_folder import fill
from tests.evals.api.test_suites import SEEN
from tests.recordings import exchange
from tests.store.traffic import NOON, chat_body, chat_stream

Captured = pytest.CaptureFixture[str]
PROMPTFOO = """
description: Capitals
providers: [none]
prompts: ["What is the capital of {{ country }}?"]
tests:
  - description: france
    vars: {country: France}
    assert: [{type: contains, value: Paris}]
"""


def test_a_promptfoo_file_becomes_a_suite_that_runs(folder: Path, capsys: Captured) -> None:
    (folder / "promptfoo.yaml").write_text(PROMPTFOO)
    assert main(["eval", "import", "promptfoo.yaml"]) == 0
    out = capsys.readouterr().out
    (folder / "suite.yaml").write_text(out)
    assert "description: Capitals\n" in out
    assert main(["eval", "run", "suite.yaml", "--target", "all"]) == 0
    assert main(["eval", "import", "promptfoo.yaml", "--to", "capitals.eval.yaml"]) == 2
    assert 'has a case "france" already' in capsys.readouterr().err
    assert main(["eval", "import", "promptfoo.yaml", "--to", "new.yaml"]) == 0
    assert (folder / "new.yaml").read_text() == out


def test_unsupported_assertion_is_reported(folder: Path, capsys: Captured) -> None:
    (folder / "p.yaml").write_text(PROMPTFOO.replace("type: contains", "type: perplexity"))
    assert main(["eval", "import", "p.yaml"]) == 2
    err = capsys.readouterr().err
    assert 'there is no counterpart to "perplexity"' in err
    assert "p.yaml cannot be imported whole" in err


def test_exchanges_are_imported_as_they_are_made(folder: Path, capsys: Captured) -> None:
    fill(folder / "data", exchange("x_1", chat_body("Hi"), chat_stream("Hello.")))
    assert main(["eval", "import", "x_1", "--name", "hi"]) == 0
    assert "  - id: hi\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gone.yaml"], "there is no file gone.yaml"),
        (["capitals.eval.yaml"], "capitals.eval.yaml is not a promptfoo file"),
        (["broken.yaml"], "broken.yaml:1:"),
        (["capitals.eval.yaml", "broken.yaml"], "one file is imported at a time"),
    ],
)
def test_other_sources_are_refused(folder: Path, capsys: Captured, words: list[str], message: str) -> None:
    (folder / "broken.yaml").write_text("prompts: [")
    assert main(["eval", "import", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def data(folder: Path) -> Path:
    fill(
        folder / "data",
        exchange("x_1", chat_body("Hi", "Hello.", "My key is the-secret-key."), chat_stream("So?")),
        exchange("x_2", SEEN, chat_stream("A dot."), at=NOON + 60),
    )
    return folder


def test_a_case_is_printed(data: Path, capsys: Captured) -> None:
    assert main(["eval", "make", "x_1", "--name", "about keys"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("tests:\n  - id: about-keys\n")
    assert "the-secret-key" not in out
    assert err == ""
    assert main(["eval", "make", "x_1", "--contains", "Rome"]) == 0
    assert "- type: contains\n        value: Rome\n" in capsys.readouterr().out
    assert main(["eval", "make", "1", "--from-turn", "2"]) == 0
    assert "mode: conversation" in capsys.readouterr().out
    assert main(["eval", "make", "x_9"]) == 2


def test_files_of_a_case_are_noted_and_written_with_it(data: Path, capsys: Captured) -> None:
    assert main(["eval", "make", "x_2", "--name", "dot"]) == 0
    assert "note: the case names dot/" in capsys.readouterr().err
    assert main(["eval", "make", "x_2", "--name", "dot", "--to", "capitals.eval.yaml"]) == 0
    assert capsys.readouterr().err.endswith("dot in capitals.eval.yaml\n")
    assert [each.read_bytes()[:4] for each in (data / "dot").iterdir()] == [b"\x89PNG"]
    assert main(["eval", "validate", "capitals.eval.yaml"]) == 0
    assert "4 cases" in capsys.readouterr().out
    assert main(["eval", "make", "x_2", "--name", "dot", "--to", "capitals.eval.yaml"]) == 2


def test_content_left_out_of_the_case_is_noted(data: Path, capsys: Captured) -> None:
    body = chat_body("Hi", response_format={"type": "json_object"})
    fill(data / "data", exchange("x_3", body, chat_stream("{}"), at=NOON + 90))
    assert main(["eval", "make", "x_3", "--to", "new.yaml"]) == 0
    assert "note: not in the case: the form of the answer" in capsys.readouterr().err
    assert (data / "new.yaml").read_text().startswith("tests:\n")
