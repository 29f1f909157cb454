import json
import os
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.exchange.memory import Memory
from sightline.model.reply import Usage
from sightline.tokens.estimate import Estimate
from tests.cli.recorded_folder import stand_alone_in

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone_in(tmp_path, monkeypatch)


def test_path_is_printed_even_without_a_file(tmp_path: Path, capsys: Captured) -> None:
    assert main(["config", "path"]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{tmp_path}/config/sightline/sightline.toml\n"
    assert "no configuration file" in captured.err


def test_the_file_here_wins_over_the_users_and_the_named_one_over_both(tmp_path: Path, capsys: Captured) -> None:
    users = tmp_path / "config" / "sightline" / "sightline.toml"
    users.parent.mkdir(parents=True)
    users.write_text("")
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{users}\n"
    (tmp_path / "sightline.toml").write_text("")
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == "sightline.toml\n"
    assert main(["config", "path", "--config", "other.toml"]) == 0
    assert capsys.readouterr().out == "other.toml\n"


def test_a_sound_configuration_is_ok(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "sightline.toml").write_text('[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\n')
    assert main(["config", "check"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("ok: sightline.toml (18 providers, ")
    assert captured.err == ""


def test_every_problem_is_named_by_file_and_line_with_the_nearest_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "sightline.toml").write_text(
        '[server]\nprot = 7700\n\n[providers.acme]\nbase_ur = "http://127.0.0.1:9/v1"\nstream_max_retries = -1\n'
    )
    monkeypatch.setenv("SIGHTLINE_SERVER_HSOT", "0.0.0.0")
    assert main(["config", "check"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "sightline.toml:2: " in captured.err
    assert 'Did you mean "port"?' in captured.err
    assert "sightline.toml:5: " in captured.err
    assert 'Did you mean "base_url"?' in captured.err
    assert "sightline.toml:6: " in captured.err
    assert "SIGHTLINE_SERVER_HSOT" in captured.err
    assert "Traceback" not in captured.err
    lines = captured.err.splitlines()
    assert all(line.startswith(("error[config]: ", "hint: ")) for line in lines)
    assert sum(line.startswith("error[config]: ") for line in lines) == 5


def test_a_mistake_in_a_cap_is_reported_with_the_line_of_that_cap(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "sightline.toml").write_text(
        '[[caps]]\nname = "a"\ntokens = 1\n\n[[caps]]\nname = "b"\n\n[[caps]]\nname = "c"\ntokens = 1\nfilter = "("\n'
    )
    assert main(["config", "check"]) == 2
    errors = capsys.readouterr().err
    assert "sightline.toml:5: the cap b sets neither dollars nor tokens" in errors
    assert "sightline.toml:8: the filter of the cap c: " in errors


def test_a_pattern_of_exports_that_is_no_expression_is_reported(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "sightline.toml").write_text("[export]\npatterns = ['(']\n")
    assert main(["config", "check"]) == 2
    assert "sightline.toml: a pattern is not a regular expression: '('" in capsys.readouterr().err


def test_other_commands_refuse_such_a_configuration(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "sightline.toml").write_text("[server]\nprot = 7700\n")
    assert main(["ask", "hi"]) == 2
    assert capsys.readouterr().err.startswith("error[config]: sightline.toml:2: ")


def test_unreadable_file_is_reported(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "sightline.toml").write_bytes(b"\xff")
    assert main(["config", "check"]) == 2
    assert "not UTF-8 (byte 0)" in capsys.readouterr().err
    assert main(["config", "check", "--config", "nowhere.toml"]) == 2
    assert "error[config]: nowhere.toml: No such file" in capsys.readouterr().err


def test_effective_configuration_merges_file_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "sightline.toml").write_text(
        '[server]\nport = 8801\n[providers.openai]\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    monkeypatch.setenv("SIGHTLINE_ASK_MODEL", "local")
    monkeypatch.setenv("OPENAI_API_KEY", "the-secret")
    assert main(["config", "show"]) == 0
    told = capsys.readouterr().out
    shown = json.loads(told)
    assert shown["server"]["port"] == 8801
    assert shown["ask"]["model"] == "local"
    assert shown["providers"]["openai"]["base_url"] == "http://127.0.0.1:9/v1"
    assert shown["providers"]["openai"]["key_env"] == "OPENAI_API_KEY"
    assert "the-secret" not in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[ask]\nmodel = "nosuch"\n', 'sightline.toml: no provider is known for the model "nosuch"'),
        ('[network]\nca_file = "/nowhere.pem"\n', "sightline.toml: "),
    ],
)
def test_what_is_well_formed_and_cannot_work_is_found_too(
    tmp_path: Path, capsys: Captured, text: str, words: str
) -> None:
    (tmp_path / "sightline.toml").write_text(text)
    assert main(["config", "check"]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) <= 2


def test_a_path_in_another_encoding_is_printed_as_it_is(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["config", "path", "--config", os.fsdecode(b"x\xff.toml")]) == 0
    assert capfdbinary.readouterr().out == b"x\xff.toml\n"


def test_what_was_learned_is_listed_by_the_doctor_and_can_be_forgotten(tmp_path: Path, capsys: Captured) -> None:
    memory = Memory(tmp_path / "data", lambda: 0.0)
    for reported in (120, 90_000):
        memory.learn("acme", "large", Estimate(100, 80, 150), Usage(input_tokens=reported), tools=True)
    memory.learn("acme", "small", Estimate(100, 80, 150), Usage(input_tokens=120), tools=False)
    memory.save()
    data = ["--data", str(tmp_path / "data")]
    main(["doctor", *data])
    told = capsys.readouterr().out
    assert "acme/large (tools): estimates x 1.2 + 0, from 1 counts; 1 odd counts set aside" in told
    assert "To forget it: sightline config forget-learned acme/large" in told
    assert main(["config", "forget-learned", "large", *data]) == 0
    assert capsys.readouterr().out == "acme/large+tools\n"
    assert main(["config", "forget-learned", "large", *data]) == 1
    captured = capsys.readouterr()
    assert (captured.out, "nothing was learned about large" in captured.err) == ("", True)
    assert main(["config", "forget-learned", *data]) == 0
    assert capsys.readouterr().out == "acme/small\n"
    assert main(["config", "forget-learned", *data]) == 0
