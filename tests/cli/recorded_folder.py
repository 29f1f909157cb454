"""A folder as a user has it after some traffic: a provider, its key, and a record."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sightline.store.entries import Entry
from tests.background import upstream_in_background
from tests.recordings import store_with
from tests.upstream import Upstream


async def fill(folder: Path, *exchanges: Iterable[Entry]) -> None:
    """Put these on record."""
    async with store_with(folder, *exchanges):
        pass


@contextmanager
def folder_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """A provider `acme` with a key, and nothing else in folder and environment."""
    for name in list(os.environ):
        if name.startswith("SIGHTLINE_") or name.endswith(("_API_KEY", "_proxy", "_PROXY")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ACME_API_KEY", "the-secret-key")
    with upstream_in_background() as upstream:
        (tmp_path / "sightline.toml").write_text(
            f'[providers.acme]\nbase_url = "{upstream.url}/v1"\nkey_env = "ACME_API_KEY"\n'
            f'[providers.open]\nbase_url = "{upstream.url}/v1"\n'
            f'[providers.claude]\nbase_url = "{upstream.url}"\ndialect = "anthropic"\nkey_env = "ACME_API_KEY"\n'
            '[models."m"]\nproviders = ["acme"]\nprices = { input = 1.0, output = 2.0 }\n'
        )
        yield upstream
