"""What will be held, over the API: the mode, the rules, and the masks."""

from collections.abc import Sequence

import msgspec

from sightline.editing.masks import Mask
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.rules import InterceptionRule
from sightline.exchange.interception.holds import Holds
from sightline.model.json import JsonObject
from sightline.web.asgi import Receive
from sightline.web.request_body import order, read_json
from sightline.wire.jsontext import MISFIT
from sightline.workbench.shapes import Intercepting


class Interceptions:
    """Asks the holds and tells them. A list is put in place whole, or not at all; holds that are there stay."""

    def __init__(self, holds: Holds) -> None:
        self._holds = holds

    @property
    def mode(self) -> Intercepting:
        """The mode."""
        return Intercepting(self._holds.mode)

    @property
    def rules(self) -> Sequence[InterceptionRule]:
        """The rules, in their order."""
        return self._holds.rules

    @property
    def masks(self) -> Sequence[JsonObject]:
        """The edits that are repeated on later requests; each says its scope, also where that is the usual one."""
        return [self._mask_report(mask) for mask in self._holds.masks]

    def _mask_report(self, mask: Mask) -> JsonObject:
        count = self._holds.count_of(mask)
        return {
            **msgspec.to_builtins(mask),
            "scope": mask.scope,
            "at": mask.created,
            "applied": count.applied,
            "missed": count.missed,
            "last_exchange": count.last_exchange or None,
        }

    async def set_mode(self, receive: Receive) -> Intercepting:
        """Another mode."""
        wanted = await order(receive)
        try:
            mode = msgspec.convert(wanted, _Wanted).mode
        except MISFIT as error:
            hint = 'Send {"mode": "off"|"next"|"every"|"rules"}.'
            raise Fault(Code.INVALID_REQUEST, f"no mode: {error}", hint=hint, status=422) from None
        self._holds.set_mode(mode)
        return self.mode

    async def set_rules(self, receive: Receive) -> Sequence[InterceptionRule]:
        """Other rules."""
        self._holds.set_rules(await read_json(receive))
        return self.rules

    async def set_masks(self, receive: Receive) -> Sequence[JsonObject]:
        """Other masks."""
        self._holds.set_masks(await read_json(receive))
        return self.masks

    async def remove_mask(self, name: str) -> Sequence[JsonObject]:
        """Without one of them; the answer is the list that is left."""
        self._holds.remove_mask(name)
        return self.masks


class _Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mode: str
