"""What a person changed in a request while it was held, known when it is released."""

from typing import TypeAlias

from sightline.editing.comparing import SectionChange, carry_over, changes_between
from sightline.editing.draft import Draft
from sightline.exchange.holds import Holds
from sightline.exchange.remote_relay import RemoteHold, RemoteHolds
from sightline.model.exchange import Released
from sightline.model.message import Message
from sightline.store.entries import FactEntry

Changes: TypeAlias = tuple[tuple[SectionChange, ...], ...]
"""The changes of several requests, one after the other: each was made on what the one before had left."""


def changes_while_held(holds: Holds | RemoteHolds, noted: FactEntry) -> Changes:
    """The changes of a request of which this fact says that it was released; none otherwise. What masks did before is
    no change: they do it again on the next request."""
    if not isinstance(noted.fact, Released):
        return ()
    hold = holds.find(noted.exchange)
    if isinstance(hold, RemoteHold):
        return (hold.changes,) if hold.changes else ()
    if hold is None or hold.kept is None or not isinstance(hold.draft, Draft):
        return ()
    found = changes_between(hold.kept.start, hold.draft)
    return (found,) if found else ()


def apply_changes(messages: tuple[Message, ...], changes: Changes) -> tuple[Message, ...]:
    """The messages after the changes of all of these requests."""
    for each in changes:
        messages = carry_over(messages, each)
    return messages
