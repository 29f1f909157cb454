"""Pairs whose words a person changed in a held request, written down as they were sent."""

import msgspec

from sightline.chat.core.pair import ChatAnswer
from sightline.chat.core.revisions import revise_pairs, revision
from sightline.chat.service.chat import Chat
from sightline.exchange.interception.hold_changes import Changes


async def revise(
    chat: Chat, pair: str, sent: tuple[str, ...], answer: ChatAnswer | None, changes: Changes
) -> ChatAnswer | None:
    """Take these changes over into the pair and into those that were `sent` with it. The result is the answer, whose
    rounds with tools may be among what was changed."""
    history = chat.history
    if not changes or not history.is_live(pair):
        return answer
    asked = msgspec.structs.replace(history.get(pair), answer=answer)
    earlier = (history.get(name) for name in sent if name != pair and history.is_live(name))
    before = {each.id: each for each in (*earlier, asked)}
    after = dict(before)
    for each in changes:
        after |= revise_pairs(list(after.values()), pair, each)
    for name, now in after.items():
        if name == pair:
            answer = now.answer
            now = msgspec.structs.replace(now, answer=before[name].answer)
        if now != before[name]:
            await chat.happen(revision(before[name], now))
    return answer
