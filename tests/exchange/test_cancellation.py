import asyncio

from sightline.errors import CancelReason
from sightline.exchange.phase import cancel_reason, cancellation, own_request


def test_without_anything_opened_a_client_has_gone() -> None:
    assert cancel_reason() == "client_gone"
    with own_request():
        assert cancel_reason() == "interrupted"
        with cancellation("user"), own_request():
            assert cancel_reason() == "user"
    assert cancel_reason() == "client_gone"


def test_a_reason_that_is_set_later_reaches_the_tasks_that_were_started_inside() -> None:
    seen: list[CancelReason] = []

    async def work(begun: asyncio.Event) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(cancel_reason())

    async def story() -> None:
        begun = asyncio.Event()
        with cancellation("user") as opened:
            task = asyncio.ensure_future(work(begun))
        await begun.wait()
        opened.reason = "timeout"
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(story())
    assert seen == ["timeout"]
