import asyncio
from pathlib import Path

import pytest

from sightline.build.configured import configuration
from sightline.build.serving import open_server
from sightline.filter.parsing import parse


@pytest.mark.parametrize("replay", [None, parse("")])
def test_a_server_opens_and_closes_without_a_client(tmp_path: Path, replay: object) -> None:
    async def link(host: str) -> str:
        opening = open_server(configuration(None), str(tmp_path / "data"), host=host, port=7799, replay=replay)  # type: ignore[arg-type] # a filter, or none
        async with opening as (_, shown):
            return shown

    first = asyncio.run(link("localhost"))
    assert first.startswith("http://127.0.0.1:7799/?token=")
    assert asyncio.run(link("::1")) == first.replace("127.0.0.1", "[::1]"), "the token is kept"
