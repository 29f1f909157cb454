import json
from pathlib import Path

import pytest

from sightline.cli.program import main
from tests.upstream import Upstream

Captured = pytest.CaptureFixture[str]
SUITE = """
tests:
  - id: files
    criteria: x
    input:
      - {role: system, content: Be brief.}
      - {role: user, content: [{type: file, value: note.md}, {type: text, value: And now?}]}
  - {id: own, criteria: x, input: hi, execution: {target: all}}
"""


@pytest.fixture
def files(folder: Path) -> Path:
    (folder / "s.yaml").write_text(SUITE)
    (folder / "note.md").write_text("A note.\n")
    return folder


def test_the_exact_body_is_shown_and_is_what_is_sent(files: Path, upstream: Upstream, capsys: Captured) -> None:
    assert main(["eval", "preview", "s.yaml", "files", "--target", "acme/m", "--as", "wire"]) == 0
    body = capsys.readouterr().out
    assert not upstream.seen
    main(["eval", "run", "s.yaml", "--case", "files", "--target", "acme/m", "--judge", "all"])
    assert upstream.seen[0].body.decode() == body.rstrip("\n")


def test_all_of_it_for_a_person(files: Path, capsys: Captured) -> None:
    assert main(["eval", "preview", "s.yaml", "files", "--target", "acme/m"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("target    acme/m: acme/m, openai-chat\nrequest   ")
    assert "  inlined note.md: its text is in the message (s.yaml:7:" in out
    assert "flat question\n  @[System]:\n  Be brief." in out
    assert out.rstrip().endswith("}")


def test_losses_on_the_way_to_another_dialect_are_told(files: Path, capsys: Captured) -> None:
    (files / "late.yaml").write_text(
        "tests: [{id: a, criteria: x, input: [{role: user, content: Hi.}, {role: system, content: Be brief.},"
        " {role: user, content: And?}]}]"
    )
    assert main(["eval", "preview", "late.yaml", "a", "--target", "gemini/gemini-3-pro"]) == 0
    assert "  lost role of a system message: " in capsys.readouterr().out
    assert main(["eval", "preview", "late.yaml", "a", "--target", "claude/m"]) == 0
    assert "  added max_tokens " in capsys.readouterr().out


def test_other_forms(files: Path, capsys: Captured) -> None:
    assert main(["eval", "preview", "s.yaml", "files", "--target", "all", "--as", "flat"]) == 0
    assert capsys.readouterr().out.startswith("@[System]:\nBe brief.")
    assert main(["eval", "preview", "s.yaml", "files", "--as", "messages"]) == 0
    assert [json.loads(line)["role"] for line in capsys.readouterr().out.splitlines()] == ["system", "user"]


def test_a_target_that_is_no_model_gets_the_flat_question(files: Path, capsys: Captured) -> None:
    assert main(["eval", "preview", "s.yaml", "own"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("target    all (mock): it is given the flat question\n")
    assert "nothing: every message goes out as it is written" in out
    assert main(["eval", "preview", "s.yaml", "own", "--as", "wire"]) == 2
    assert "is no model" in capsys.readouterr().err


def test_what_is_not_there_is_told(files: Path, capsys: Captured) -> None:
    assert main(["eval", "preview", "gone.yaml", "a"]) == 2
    assert main(["eval", "preview", "s.yaml", "gone"]) == 2
    assert "s.yaml has no case 'gone'" in capsys.readouterr().err
