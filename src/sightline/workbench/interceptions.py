"""The API calls for interception: edit, release, drop or answer held exchanges; the mode, the rules and the masks."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from sightline.catalog.reading import REST
from sightline.editing.masks import Mask
from sightline.editing.operations import Keep, operation
from sightline.errors import Code, Fault
from sightline.exchange.hub import Hub
from sightline.exchange.interception.core.rules import InterceptionRule
from sightline.exchange.interception.hold import Hold
from sightline.exchange.interception.holds import Expand, Holds, expand
from sightline.exchange.interception.viewer import Viewer
from sightline.exchange.recording.records import Records
from sightline.model.json import JsonObject
from sightline.web.asgi import Receive
from sightline.web.bodies import MOST_WITH_BODY, Query, read_body, read_json, read_object, struct_of
from sightline.workbench.exchange_views import Showing, Shown
from sightline.workbench.shapes import Changed, HoldDecided, Intercepting

EVENT = "interception"


class _Release(msgspec.Struct, frozen=True):
    body_sha256: Annotated[str, msgspec.Meta(min_length=1)]
    keep: Keep | None = None
    others: Annotated[JsonObject, REST] = {}


class _Drop(msgspec.Struct, frozen=True):
    reason: str = ""
    others: Annotated[JsonObject, REST] = {}


class _Mode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mode: str


class HoldDecisions:
    """Acts on held exchanges. Every action is recorded before the response is sent."""

    def __init__(self, holds: Holds, records: Records, viewing: Viewer, showing: Showing) -> None:
        self._holds = holds
        self._records = records
        self._viewing = viewing
        self._showing = showing

    @property
    def waiting(self) -> tuple[str, ...]:
        """The ids of held exchanges, in order of arrival."""
        return tuple(hold.exchange for hold in self._holds.waiting)

    async def edit(self, exchange: str, query: Query, receive: Receive) -> Changed | Shown:
        """Apply one operation and return the new view. With `changed=1`, the response has only what changed; with
        `changed=SHA256`, only if that is the hash of the body before. An operation with `if_sha256` is refused if the
        body has changed by now."""
        wanted = await read_object(receive, MOST_WITH_BODY)
        expected = wanted.pop("if_sha256", None)
        before = await self._viewing.view_hold(await self._find_hold(exchange))
        if expected is not None and expected != self._holds.hold_of(exchange).draft.sha256:
            hint = "Reload it: it has changed in the meantime."
            raise Fault(
                Code.INVALID_REQUEST, "the body has changed since the operation was made", hint=hint, status=409
            )
        if wanted.get("op") == "expand":
            struct_of(wanted, Expand, hint='Send {"op": "expand"} alone.', status=400)
            hold = await expand(self._holds, self._records, exchange)
        else:
            hold = self._holds.edit(exchange, operation(wanted))
        changed = query.text("changed")
        if changed in ("", "0"):
            return await self._showing.view(exchange)
        is_known = changed in ("1", before.draft.sha256)
        return self._showing.hold_change(hold, self._viewing.now(hold), before if is_known else None)

    async def release(self, exchange: str, receive: Receive) -> HoldDecided:
        """Send the body with this hash. With `keep`, its edits are repeated on later requests."""
        body = await read_body(receive, _Release, hint="Give the body_sha256 of what is on screen.")
        await self._find_hold(exchange)
        self._holds.release(exchange, body.body_sha256, body.keep)
        return HoldDecided(exchange, "sending", body.body_sha256)

    async def drop(self, exchange: str, receive: Receive) -> HoldDecided:
        """Refuse the request; the client gets an error in its dialect, with the reason if one is given."""
        body = await read_body(receive, _Drop, hint='Send {} or {"reason": "…"}.')
        sha256 = (await self._find_hold(exchange)).draft.sha256
        self._holds.drop(exchange, body.reason)
        return HoldDecided(exchange, "dropped", sha256)

    async def answer(self, exchange: str, receive: Receive) -> HoldDecided:
        """Answer the client with this reply instead of a provider's."""
        wanted = await read_object(receive)
        if "reply" not in wanted:
            hint = 'Send {"reply": {"parts": [{"type": "text", "text": "…"}]}}.'
            raise Fault(Code.INVALID_REQUEST, "the reply is missing", hint=hint, status=422)
        sha256 = (await self._find_hold(exchange)).draft.sha256
        self._holds.answer(exchange, wanted["reply"])
        return HoldDecided(exchange, "sending", sha256)

    async def _find_hold(self, exchange: str) -> Hold:
        """The hold. Raises a different Fault for a recorded exchange that is not held than for an unknown one."""
        hold = self._holds.find(exchange)
        if hold is None:
            await self._records.facts(exchange)
        return self._holds.hold_of(exchange)


class Interceptions:
    """Reads and changes the mode, the rules and the masks. A list is replaced as a whole or not at all; existing holds
    stay. Every open page is notified of a new mode or new rules."""

    def __init__(self, holds: Holds, hub: Hub) -> None:
        self._holds = holds
        self._hub = hub

    @property
    def mode(self) -> Intercepting:
        return Intercepting(self._holds.mode)

    @property
    def rules(self) -> Sequence[InterceptionRule]:
        return self._holds.rules

    @property
    def masks(self) -> Sequence[JsonObject]:
        """The edits that are repeated on later requests; each includes its scope, even the default one."""
        return [self._mask_report(mask) for mask in self._holds.masks]

    def _mask_report(self, mask: Mask) -> JsonObject:
        count = self._holds.count_of(mask)
        return {
            **msgspec.to_builtins(mask),
            "scope": mask.scope,
            "at": mask.created,
            "applied": count.applied,
            "missed": count.missed,
            "misses": count.misses,
            "last_exchange": count.last_exchange or None,
        }

    async def set_mode(self, receive: Receive) -> Intercepting:
        body = await read_body(receive, _Mode, hint='Send {"mode": "off"|"next"|"every"|"rules"}.')
        self._holds.set_mode(body.mode)
        self._announce()
        return self.mode

    async def set_rules(self, receive: Receive) -> Sequence[InterceptionRule]:
        self._holds.set_rules(await read_json(receive))
        self._announce()
        return self.rules

    def _announce(self) -> None:
        self._hub.announce(EVENT, {"mode": self._holds.mode})

    async def set_masks(self, receive: Receive) -> Sequence[JsonObject]:
        self._holds.set_masks(await read_json(receive))
        self._announce()
        return self.masks

    async def add_mask(self, receive: Receive) -> Sequence[JsonObject]:
        """Add a mask, replacing the one with the same id, and return all of them."""
        self._holds.add_mask(await read_json(receive))
        return self.masks

    async def remove_mask(self, name: str) -> Sequence[JsonObject]:
        """Remove a mask and return the others."""
        self._holds.remove_mask(name)
        self._announce()
        return self.masks
