import asyncio
from pathlib import Path

import pytest

from sightline.evals.service.cluster.remote import Elsewhere, Fleet, LostError, RemoteHost
from tests.cluster_stage import OURS, FakeWorker, NearFleet, elsewhere, opens, said


def test_a_fleet_is_whatever_has_hosts_and_a_host_can_be_lost(tmp_path: Path) -> None:
    async def story() -> None:
        near = NearFleet(lambda _root: opens(FakeWorker()), tmp_path)
        fleet: Fleet = near
        there: Elsewhere = elsewhere(near, lambda _entries: None)
        assert there.fleet.address == fleet.address
        assert (there.ours, there.toolsets) == (OURS, {})
        post: RemoteHost = await fleet.hire()
        await post.tell(said())
        near.posts[0].lose()
        for call in (post.introduce(), post.unpack(), post.tell(said()), post.listen()):
            with pytest.raises(LostError):
                await call
        await post.end()

    asyncio.run(story())
