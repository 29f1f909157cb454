"""Fixtures for pytest: put `pytest_plugins = ["sightline.testing.plugin"]` into the conftest.py of your tests' root.

Each fixture is a function that opens a provider. When the test ends, a request that the provider could not answer fails
the test, even if the program under test has swallowed the error.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from os import PathLike
from typing import TYPE_CHECKING

import pytest

from sightline import testing

if TYPE_CHECKING:
    from sightline.testing import ServedProvider


@pytest.fixture
def scripted_provider() -> "Iterator[Callable[..., ServedProvider]]":
    """Opens a provider that answers each request with the next reply; see `sightline.testing.scripted_provider`."""
    with ExitStack() as stack:
        yield lambda *replies, **options: stack.enter_context(testing.scripted_provider(*replies, **options))


@pytest.fixture
def recorded_provider() -> "Iterator[Callable[[str | PathLike[str]], ServedProvider]]":
    """Opens a provider that answers from an archive of recordings; see `sightline.testing.recorded_provider`."""
    with ExitStack() as stack:
        yield lambda archive, **options: stack.enter_context(testing.recorded_provider(archive, **options))
