import argparse
from pathlib import Path

import pytest

from sightline.cli.options import add_shared, amount, count, instructions_in, number
from sightline.errors import Code, Fault


def test_every_command_takes_a_configuration_and_a_data_folder() -> None:
    parser = argparse.ArgumentParser()
    add_shared(parser)
    told = parser.parse_args(["--config", "a.toml", "--data", "d", "--log-level", "debug"])
    assert (told.config, told.data, told.log_level) == ("a.toml", "d", "debug")
    silent = parser.parse_args([])
    assert (silent.config, silent.data, silent.log_level) == (None, None, "info")


def test_numbers_that_options_take() -> None:
    assert (count("3"), number("-0.5"), amount("0.5")) == (3, -0.5, 0.5)
    for read, text in ((count, "0"), (count, "-1"), (count, "٣"), (number, "nan"), (number, "x"), (amount, "0")):
        with pytest.raises(argparse.ArgumentTypeError):
            read(text)


def test_instructions_are_a_text_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.md").write_text("\ufeffUse metres.\n", encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert instructions_in("rules.md") == "Use metres."
    assert instructions_in("Use rules.md as it is.") == "Use rules.md as it is."
    assert instructions_in("Brief.") == "Brief."
    assert instructions_in("x" * 5000) == "x" * 5000
    assert (instructions_in(None), instructions_in(None, "Usual."), instructions_in("", "Usual.")) == ("", "Usual.", "")
    for name in ("missing.md", "no/such", "binary"):
        with pytest.raises(Fault) as caught:
            instructions_in(name)
        assert caught.value.code is Code.USAGE
