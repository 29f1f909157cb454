"""What a person does to a held exchange over the API: edit, release, drop, answer."""

from urllib.parse import parse_qs

import msgspec

from sightline.editing.operations import Keep, operation
from sightline.errors import Code, Fault
from sightline.exchange.interception.hold import Hold
from sightline.exchange.interception.holds import Expand, Holds, expand
from sightline.exchange.interception.viewer import Viewer
from sightline.exchange.recording.records import Records
from sightline.model.json import Json
from sightline.web.asgi import Receive
from sightline.web.bodies import one
from sightline.web.request_body import MOST_WITH_BODY, order
from sightline.wire.jsontext import MISFIT
from sightline.workbench.exchange_views import Showing, Shown
from sightline.workbench.shapes import Changed, HoldDecided


class HoldDecisions:
    """Acts on what is held. Whatever is answered is on record by then."""

    def __init__(self, holds: Holds, records: Records, viewing: Viewer, showing: Showing) -> None:
        self._holds = holds
        self._records = records
        self._viewing = viewing
        self._showing = showing

    @property
    def waiting(self) -> tuple[str, ...]:
        """The ids of what is held, in order of arrival."""
        return tuple(hold.exchange for hold in self._holds.waiting)

    async def edit(self, exchange: str, query: str, receive: Receive) -> Changed | Shown:
        """Do one operation; the answer is the new view. With `changed=1` it is only what is new in that, and with
        `changed=SHA256` so if this was the hash of the body before. `if_sha256` in the operation refuses it where
        another body stands there by now."""
        wanted = await order(receive, MOST_WITH_BODY)
        expected = wanted.pop("if_sha256", None)
        before = await self._viewing.view_hold(await self._find_hold(exchange))
        if expected is not None and expected != self._holds.hold_of(exchange).draft.sha256:
            hint = "Look at it again: somebody has changed it since."
            raise Fault(Code.INVALID_REQUEST, "the operation is meant for another body", hint=hint, status=409)
        if wanted.get("op") == "expand":
            _check_expand(wanted)
            hold = await expand(self._holds, self._records, exchange)
        else:
            hold = self._holds.edit(exchange, operation(wanted))
        asked = one(parse_qs(query), "changed")
        if asked in ("", "0"):
            return await self._showing.view(exchange)
        is_known = asked in ("1", before.draft.sha256)
        return self._showing.hold_change(hold, self._viewing.now(hold), before if is_known else None)

    async def release(self, exchange: str, receive: Receive) -> HoldDecided:
        """Send exactly what is on screen; with `keep` its edits are repeated on later requests."""
        wanted = await order(receive)
        sha256 = wanted.get("body_sha256")
        if not isinstance(sha256, str) or not sha256:
            hint = "Give the body_sha256 of what is on screen."
            raise Fault(Code.INVALID_REQUEST, "nothing says which body is to be sent", hint=hint, status=422)
        keep = _scope(wanted.get("keep"))
        await self._find_hold(exchange)
        self._holds.release(exchange, sha256, keep)
        return HoldDecided(exchange, "sending", sha256)

    async def drop(self, exchange: str, receive: Receive) -> HoldDecided:
        """Refuse it; the client gets an error of its dialect, with the reason if one is given."""
        reason = (await order(receive)).get("reason", "")
        if not isinstance(reason, str):
            hint = 'Send {} or {"reason": "…"}.'
            raise Fault(Code.INVALID_REQUEST, "the reason is no text", hint=hint, status=422)
        sha256 = (await self._find_hold(exchange)).draft.sha256
        self._holds.drop(exchange, reason)
        return HoldDecided(exchange, "dropped", sha256)

    async def answer(self, exchange: str, receive: Receive) -> HoldDecided:
        """Let the client have this reply in place of a provider's."""
        wanted = await order(receive)
        if "reply" not in wanted:
            hint = 'Send {"reply": {"parts": [{"type": "text", "text": "…"}]}}.'
            raise Fault(Code.INVALID_REQUEST, "there is no reply in it", hint=hint, status=422)
        sha256 = (await self._find_hold(exchange)).draft.sha256
        self._holds.answer(exchange, wanted["reply"])
        return HoldDecided(exchange, "sending", sha256)

    async def _find_hold(self, exchange: str) -> Hold:
        """The hold; one that is on record and not held is another mistake than one that never was."""
        hold = self._holds.find(exchange)
        if hold is None:
            await self._records.facts(exchange)
        return self._holds.hold_of(exchange)


def _scope(value: Json) -> Keep | None:
    try:
        scope: Keep | None = msgspec.convert(value, Keep | None)
        return scope
    except MISFIT:
        hint = 'keep is "session", "project" or "all".'
        raise Fault(Code.INVALID_REQUEST, f"nothing can be kept for {value!r}"[:120], hint=hint, status=422) from None


def _check_expand(wanted: Json) -> None:
    try:
        msgspec.convert(wanted, Expand)
    except MISFIT as error:
        hint = 'Send {"op": "expand"} alone.'
        raise Fault(Code.INVALID_REQUEST, f"no such edit: {error}", hint=hint, status=400) from None
