"""What a person changed in a request while it was held, known when it is released."""

from typing import TypeAlias

from sightline.editing.comparing import SectionChange, carry_over
from sightline.exchange.interception.holds import Holds
from sightline.exchange.remote_relay import RemoteHolds
from sightline.model.exchange import Released
from sightline.model.request import Message
from sightline.store.entries import FactEntry

Changes: TypeAlias = tuple[tuple[SectionChange, ...], ...]
"""The changes of several requests, one after the other: each was made on what the one before had left."""


def changes_while_held(holds: Holds | RemoteHolds, entry: FactEntry) -> Changes:
    """What a user changed in a request, if this fact says that it was released; nothing otherwise."""
    if not isinstance(entry.fact, Released):
        return ()
    hold = holds.find(entry.exchange)
    return () if hold is None or not hold.changes else (hold.changes,)


def apply_changes(messages: tuple[Message, ...], changes: Changes) -> tuple[Message, ...]:
    """The messages after the changes of all of these requests."""
    for each in changes:
        messages = carry_over(messages, each)
    return messages
