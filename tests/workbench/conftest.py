"""A provider that says what a test has scripted."""

from collections.abc import Iterator

import pytest

from tests.background import upstream_in_background
from tests.upstream import Upstream


@pytest.fixture
def acme() -> Iterator[Upstream]:
    with upstream_in_background() as upstream:
        yield upstream
