"""An SQLite record and a journal in the folder of a test, both closed at its end."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sightline.store.journal import JournalWriter
from sightline.store.sqlite_database import open_database
from sightline.store.sqlite_sink import SqliteSink
from tests.store.traffic import prices


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_database(tmp_path)) as opened:
        yield opened


@pytest.fixture
def sink(connection: sqlite3.Connection) -> SqliteSink:
    return SqliteSink(connection, prices)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[JournalWriter]:
    with closing(JournalWriter(tmp_path)) as made:
        yield made
