import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sightline.app.machine import SystemClock
from sightline.cli.program import main
from sightline.platform import support
from tests.cli.recorded_folder import stand_alone_in
from tests.local_model import needs_model

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone_in(tmp_path, monkeypatch)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)


@needs_model
def test_where_all_is_well_it_says_so_part_by_part(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-secret")
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "  ok   openai           OPENAI_API_KEY is set\n" in told
    assert "  --   proxy            none\n" in told
    assert "  ok   answer           it says " in told
    assert "the-secret" not in told
    assert "NO" not in told.split()


def test_what_the_system_lacks_is_listed(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(support.missing, "__defaults__", ("win32",))
    monkeypatch.setenv("SIGHTLINE_LOCAL_URL", "http://127.0.0.1:9")
    main(["doctor"])
    assert "  --   system           not supported here: run, workers, built-in tools\n" in capsys.readouterr().out


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "HTTPS_PROXY"])
def test_what_is_broken_is_marked_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, variable: str
) -> None:
    monkeypatch.setenv(variable, "socks5://nowhere" if variable == "HTTPS_PROXY" else str(tmp_path / "none.pem"))
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "sightline.toml" / "data"))
    monkeypatch.setenv("SIGHTLINE_LOCAL_URL", "http://127.0.0.1:9")
    (tmp_path / "sightline.toml").write_text("[server]\nprot = 1\n")
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "  NO   problem          sightline.toml:2: " in told
    assert 'Did you mean "port"?' in told
    assert "  NO   data             " in told
    assert f"  NO   {'proxy' if variable == 'HTTPS_PROXY' else 'certificates'}" in told
    assert "  NO   answer           " in told


def test_prices_that_were_looked_up_long_ago_are_named_with_their_source(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("SIGHTLINE_LOCAL_URL", "http://127.0.0.1:9")
    for year, is_old in ((2026, False), (2028, True)):
        at = datetime(year, 11, 16, tzinfo=UTC).timestamp()
        monkeypatch.setattr(SystemClock, "now", staticmethod(lambda at=at: at))
        main(["doctor"])
        told = capsys.readouterr().out.partition("\nprices\n")[2]
        found = re.search(r"  --   anthropic        \d+ prices looked up in 20\d\d-\d\d or later: .*claude-", told)
        assert (found is not None) == is_old
        assert ("https://platform.claude.com/docs/en/about-claude/pricing" in told) == is_old
        assert ("  ok   prices           of " in told) != is_old
