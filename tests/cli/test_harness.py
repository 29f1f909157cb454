import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.dialects.endpoint import provider_dialects
from sightline.dialects.registry import dialect
from sightline.model.parts import Text, ToolResult
from tests.terminal_stage import PROGRAM, seated

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples" / "harness.json")
CAPTURE = str(ROOT / "examples" / "harness.sse")
Captured = pytest.CaptureFixture[str]
TOOLS = '''
from pathlib import Path

def edit_file(filePath: str, code: str = "") -> str:
    """Edit a file in repo."""
    with Path("edited").open("a") as file:
        file.write(f"{filePath}\\n")
    return f"Edited {filePath}"
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    (tmp_path / "kit.py").write_text(TOOLS)
    return tmp_path


@pytest.mark.parametrize("spoken", [each.name for each in provider_dialects()])
def test_the_example_runs_in_every_dialect_and_touches_nothing(spoken: str, folder: Path, capsys: Captured) -> None:
    assert main(["harness", EXAMPLE, "--dialect", spoken]) == 0
    out, err = capsys.readouterr()
    assert out == "Both files are changed."
    assert "← edit_file: Added multiply function to /path/test.js" in err
    assert "script/scripted: 2 rounds, 2 tool calls" in err
    assert not (folder / "data").exists()


def test_requests_option_prints_what_is_sent_to_the_model(capsys: Captured) -> None:
    assert main(["harness", EXAMPLE, "--requests", "--quiet"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert len(first["messages"]) == 1
    results = dialect("anthropic").read_request(second).messages[-1].parts
    told = [
        each.text for part in results if isinstance(part, ToolResult) for each in part.parts if isinstance(each, Text)
    ]
    assert told == ["Added multiply function to /path/test.js", "Modified /path/server.js"]


def test_a_capture_runs_real_tools_and_ends_where_it_ends(folder: Path, capsys: Captured) -> None:
    words = ["harness", CAPTURE, "--tools", "kit.py", "--yes", "--prompt", "Make these changes for me", "--requests"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert (folder / "edited").read_text().splitlines() == ["/path/test.js", "/path/server.js"]
    assert "note: the script ends here" in err
    second = json.loads(out.splitlines()[1])
    assert second["messages"][0]["content"][0]["text"] == "Make these changes for me"
    assert [part["tool_use_id"] for part in second["messages"][-1]["content"]] == [
        "tooluse_448k6WHnTpS28K0Bd1bhgA",
        "tooluse_2SRF2HShTXOoLdGrjWuGiw",
    ]


def test_real_tools_are_not_run_unasked_by_a_script(folder: Path, capsys: Captured) -> None:
    assert main(["harness", EXAMPLE, "--tools", "kit.py"]) == 2
    assert "no one is there to approve calls of edit_file" in capsys.readouterr().err
    with seated(["harness", EXAMPLE, "--tools", "kit.py"], folder, dict(os.environ)) as seat:
        for _ in range(2):
            seat.answer("? help] ", "n")
            seat.answer("may be empty) ", "")
        assert seat.ended() == 0
    assert not (folder / "edited").exists()


def test_a_run_can_be_kept_and_looked_at(folder: Path, capsys: Captured) -> None:
    data = str(folder / "kept")
    assert main(["harness", EXAMPLE, "--data", data, "--json", "--quiet"]) == 0
    run = json.loads(capsys.readouterr().out)
    assert (run["why"], run["origin"]) == ("answered", {"kind": "harness"})
    assert main(["runs", "--data", data, run["id"]]) == 0
    assert "→ edit_file" in capsys.readouterr().out


def test_unplayable_input_is_reported(folder: Path, capsys: Captured) -> None:
    (folder / "odd.json").write_text('{"rounds": []}')
    for words, said in (
        (["odd.json"], "odd.json is no script"),
        (["missing.json"], "missing.json: No such file"),
        ([CAPTURE, "--dialect", "gemini"], "is a stream of anthropic, not of gemini"),
        ([EXAMPLE, "--hooks", "h.json"], "--hooks needs real tools"),
    ):
        assert main(["harness", *words]) == 2
        assert said in capsys.readouterr().err


def test_a_script_that_never_ends_its_calls_is_held_by_the_limits(folder: Path, capsys: Captured) -> None:
    call = {"deltas": [{"call": "look"}], "results": ["the same"]}
    (folder / "again.json").write_text(json.dumps({"tools": [{"name": "look"}], "rounds": [call] * 8}))
    assert main(["harness", "again.json"]) == 1
    assert "identical calls with the same result" in capsys.readouterr().err


def test_pieces_come_with_a_delay(folder: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "harness", EXAMPLE, "--delay", "0.001"], capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stdout) == (0, b"Both files are changed."), sys.stderr


def test_the_guide_s_script_is_one(folder: Path, capsys: Captured) -> None:
    guide = (ROOT / "docs" / "guide" / "harness.md").read_text()
    (script,) = re.findall(r"^```json\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (folder / "script.json").write_text(script)
    assert main(["harness", "script.json"]) == 0
    out, err = capsys.readouterr()
    assert out == "It is 5."
    assert "← add: 5" in err
