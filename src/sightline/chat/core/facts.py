"""What can happen in a chat, as facts that are only ever added; its history is a fold over them."""

from typing import TypeAlias

import msgspec

from sightline.chat.core.pair import ChatAnswer, Flag, Hand, MessagePair, Star, Trouble
from sightline.chat.core.topics import Topic
from sightline.errors import CancelReason
from sightline.model.parts import Part


class PairAsked(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="asked"):
    """A question went out, as a new pair at the end. `replaces` is the pair that it is asked instead of: one that had
    failed, or one whose question was changed."""

    pair: MessagePair
    replaces: str = ""


class PairAnswered(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="answered"):
    """The answer has come; an earlier one is kept behind it."""

    id: str
    answer: ChatAnswer


class PairFailed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="failed"):
    """There is no answer, or only what had come of it."""

    id: str
    trouble: Trouble
    partial: ChatAnswer | None = None
    exchange: str = ""


class PairCancelled(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cancelled"):
    """It was broken off, usually by a person; what had come stays, marked as partial."""

    id: str
    partial: ChatAnswer | None = None
    exchange: str = ""
    reason: CancelReason = "user"


class PairReasked(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="reasked"):
    """The same question went out again, where it stands, perhaps to another model; its answer stays until a new one
    has come."""

    id: str
    model: str = ""


class RunJoined(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="run_joined"):
    """A run with tools answers it: one that begins, or one that was broken off and is taken up, so that the pair waits
    again."""

    id: str
    run: str


class AnswerSwapped(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="swapped"):
    """One of the earlier answers is the answer again, and the answer is the last of the earlier ones."""

    id: str
    index: int = -1


class PairEdited(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="edited"):
    """A person changed what stands there; None is as it was."""

    id: str
    user_text: str | None = None
    assistant_text: str | None = None
    attachments: tuple[Part, ...] | None = None


class PairRevised(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="revised"):
    """A person edited a request while it was held, and this is what was sent of the pair; None is as it was. It may
    still wait for its answer."""

    id: str
    user_text: str | None = None
    attachments: tuple[Part, ...] | None = None
    answer: ChatAnswer | None = None


Event: TypeAlias = (
    PairAsked
    | PairAnswered
    | PairFailed
    | PairCancelled
    | PairReasked
    | RunJoined
    | AnswerSwapped
    | PairEdited
    | PairRevised
)
"""What happens to one pair."""


class PairsStarred(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="starred"):
    """They have so many stars."""

    ids: tuple[str, ...]
    star: Star


class PairsFlagged(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="flagged"):
    """They have this colour."""

    ids: tuple[str, ...]
    flag: Flag


class PairsMoved(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="moved"):
    """They belong to this topic."""

    ids: tuple[str, ...]
    topic: str


class PairsHandled(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="handled"):
    """A person took them in or left them out by hand, or leaves it to the filter again."""

    ids: tuple[str, ...]
    hand: Hand


Mark: TypeAlias = PairsStarred | PairsFlagged | PairsMoved | PairsHandled
"""What a person says of pairs, without touching what they say."""


class PairsDeleted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="deleted"):
    """They are gone from the history, and can come back."""

    ids: tuple[str, ...]


class PairsRestored(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="restored"):
    """They are back where they were."""

    ids: tuple[str, ...]


class PairsCompacted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="compacted"):
    """A summary stands in the place of the pairs in its `summary_of`, which stay below it."""

    summary: MessagePair


class CompactionUndone(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="compaction_undone"):
    """The pairs stand where they stood, and the summary is gone."""

    id: str


class ChatImported(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="imported"):
    """Pairs and their topics came from elsewhere, each to its place in time. Those that are here already stay."""

    topics: tuple[Topic, ...]
    pairs: tuple[MessagePair, ...]


Presence: TypeAlias = PairsDeleted | PairsRestored | PairsCompacted | CompactionUndone | ChatImported
"""What changes which pairs there are."""


class TopicAdded(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="topic_added"):
    """There is one more topic."""

    topic: Topic


class TopicChanged(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="topic_changed"):
    """A topic has another name, place, prompt, model or parameters."""

    topic: Topic


class TopicRemoved(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="topic_removed"):
    """There is one topic less; it was empty."""

    id: str


Growth: TypeAlias = TopicAdded | TopicChanged | TopicRemoved
"""What happens to the tree of topics."""

ChatFact: TypeAlias = (
    PairAsked
    | PairAnswered
    | PairFailed
    | PairCancelled
    | PairReasked
    | RunJoined
    | AnswerSwapped
    | PairEdited
    | PairRevised
    | PairsStarred
    | PairsFlagged
    | PairsMoved
    | PairsHandled
    | PairsDeleted
    | PairsRestored
    | PairsCompacted
    | CompactionUndone
    | ChatImported
    | TopicAdded
    | TopicChanged
    | TopicRemoved
)
