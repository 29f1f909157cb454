"""A folder as a user has it after some traffic: a provider, its key, and a record."""

import asyncio
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.store.entries import Entry
from tests.background import upstream_in_background
from tests.recordings import store_with
from tests.upstream import Upstream


def fill(folder: Path, *exchanges: Iterable[Entry]) -> None:
    """Put these on record."""

    async def keep() -> None:
        async with store_with(folder, *exchanges):
            pass

    asyncio.run(keep())


def stand_alone_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this folder: no other configuration, no key, no proxy."""
    for name in list(os.environ):
        if name.startswith("SIGHTLINE_") or name.endswith(("_API_KEY", "_proxy", "_PROXY")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("SIGHTLINE_DATA", str(folder / "data"))


@contextmanager
def folder_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """A provider `acme` with a key, and nothing else in folder and environment."""
    stand_alone_in(tmp_path, monkeypatch)
    monkeypatch.setenv("ACME_API_KEY", "the-secret-key")
    with upstream_in_background() as upstream:
        (tmp_path / "sightline.toml").write_text(
            f'[providers.acme]\nbase_url = "{upstream.url}/v1"\nkey_env = "ACME_API_KEY"\n'
            f'[providers.open]\nbase_url = "{upstream.url}/v1"\n'
            f'[providers.claude]\nbase_url = "{upstream.url}"\ndialect = "anthropic"\nkey_env = "ACME_API_KEY"\n'
            '[models."m"]\nproviders = ["acme"]\nprices = { input = 1.0, output = 2.0 }\n'
        )
        yield upstream


def ran(capsysbinary: pytest.CaptureFixture[bytes], *words: str, status: int = 0) -> tuple[bytes, str]:
    """What a command prints, and what it says beside."""
    assert main(list(words)) == status
    captured = capsysbinary.readouterr()
    return captured.out, captured.err.decode()


def traffic(capsysbinary: pytest.CaptureFixture[bytes], wanted: str = "") -> list[dict[str, object]]:
    """The exchanges on record that fit, newest first."""
    capsysbinary.readouterr()
    assert main(["traffic", "--json", wanted]) == 0
    return [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
