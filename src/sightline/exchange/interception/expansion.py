"""A request that goes on from a response which its provider keeps, written out from the record."""

from typing import Final

import msgspec

from sightline.editing.operations import SetBody
from sightline.editing.response_chain import ChainLink, expand_request, previous_of
from sightline.errors import Code, Fault
from sightline.exchange.interception.hold import Hold
from sightline.exchange.interception.holds import Holds
from sightline.exchange.recording.records import Records

MOST_LINKS: Final = 500


class Expand(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", tag="expand"):
    """The whole conversation in place of the reference to a response that the provider keeps."""


async def expand(holds: Holds, records: Records, exchange: str) -> Hold:
    """Do that to a held request, as one step to undo; a fault says which response is not on record."""
    hold = holds.hold_of(exchange)
    if hold.phase == "tool_calls":
        hint = "Change the arguments, or delete the call."
        raise Fault(Code.INVALID_REQUEST, "tool calls go on from nothing", hint=hint, status=422)
    chain = await _chain(records, exchange, previous_of(hold.draft.data))
    # While the record was read, a user may have edited or released it.
    body = expand_request(holds.hold_of(exchange).draft.data, chain)
    return holds.edit(exchange, SetBody(body=body.decode()), word="expand")


async def _chain(records: Records, exchange: str, reference: str) -> list[ChainLink]:
    """The exchanges that led here, the oldest first, as far as they are on record."""
    chain: list[ChainLink] = []
    while reference and len(chain) < MOST_LINKS:
        before = await records.previous(exchange)
        if before is None:
            break
        chain.append(ChainLink(before.sent, before.reply_body))
        exchange, reference = before.id, previous_of(before.sent)
    return chain[::-1]
