"""The calls that send: a question, one that is asked again, and what is done about one that is under way."""

from sightline.chat.api.bodies import ReaskWanted, ResumeWanted, SendWanted
from sightline.chat.api.refusals import not_there
from sightline.chat.api.shapes import AskedShown, Versioned
from sightline.chat.api.uploads import parts_from_uploads
from sightline.chat.service.service import ChatService


class SendCalls:
    """Hands them to the service. Each is answered as soon as the pair is in the history; the rest comes as events."""

    def __init__(self, service: ChatService) -> None:
        self._service = service

    async def send(self, wanted: SendWanted) -> AskedShown:
        """Ask something."""
        parts = parts_from_uploads(wanted.attachments)
        if wanted.replaces:
            await self._check(wanted.replaces)
        pair = await self._service.sends.send(
            wanted.view,
            wanted.text,
            parts,
            replaces=wanted.replaces,
            hold=wanted.hold,
            step=wanted.step,
            expect_sha256=wanted.expect_sha256,
            quota=wanted.quota,
        )
        return AskedShown(pair)

    async def reask(self, pair: str, wanted: ReaskWanted) -> AskedShown:
        """Ask it again, where it stands."""
        await self._check(pair)
        asked = await self._service.sends.reask(
            pair, wanted.view, model=wanted.model, hold=wanted.hold, step=wanted.step, quota=wanted.quota
        )
        return AskedShown(asked)

    async def cancel(self) -> Versioned:
        """Break off what is under way; what has come stays."""
        await self._service.chat.load()
        await self._service.sends.cancel()
        return Versioned(self._service.chat.version)

    async def resume(self, wanted: ResumeWanted) -> Versioned:
        """Go on with what waits for its quota."""
        await self._service.chat.load()
        self._service.sends.resume(anyway=wanted.anyway)
        return Versioned(self._service.chat.version)

    async def _check(self, pair: str) -> None:
        history = await self._service.chat.load()
        if pair not in history:
            raise not_there("pair", pair)
