"""The calls by which a summary is drafted, weighed, accepted and undone."""

from sightline.chat.api.bodies import CompactionUndoWanted, CompactionWanted, CompareWanted, DraftWanted
from sightline.chat.api.pair_showing import band
from sightline.chat.api.refusals import not_there
from sightline.chat.api.shapes import AskedShown, ComparisonShown, DraftShown, Versioned
from sightline.chat.service.service import ChatService


class CompactionCalls:
    """Hands them to the service. Whoever hangs up while a draft is made breaks it off."""

    def __init__(self, service: ChatService) -> None:
        self._service = service

    async def draft(self, wanted: DraftWanted) -> DraftShown:
        """A summary by the model."""
        await self._check(wanted.ids)
        draft = await self._service.compacting.draft(wanted.view, wanted.ids, wanted.instruction)
        told = draft.comparison
        return DraftShown(text=draft.text, before=band(told.before), after=band(told.after), exchange=draft.exchange)

    async def compare(self, wanted: CompareWanted) -> ComparisonShown:
        """Before and after, for this text."""
        await self._check(wanted.ids)
        told = await self._service.compacting.compare(wanted.view, wanted.ids, wanted.text)
        return ComparisonShown(band(told.before), band(told.after))

    async def accept(self, wanted: CompactionWanted) -> AskedShown:
        """The summary stands for them."""
        await self._check(wanted.ids)
        return AskedShown(await self._service.compacting.accept(wanted.ids, wanted.text))

    async def undo(self, wanted: CompactionUndoWanted) -> Versioned:
        """They are back, and the summary is gone."""
        await self._check((wanted.id,))
        await self._service.compacting.undo(wanted.id)
        return Versioned(self._service.chat.version)

    async def _check(self, ids: tuple[str, ...]) -> None:
        history = await self._service.chat.load()
        for pair in ids:
            if pair not in history:
                raise not_there("pair", pair)
