"""The facts of a chat. They are only added; its history is a fold over them."""

from typing import TypeAlias

import msgspec

from sightline.chat.core.pair import ChatAnswer, Flag, Hand, MessagePair, Star, Trouble
from sightline.chat.core.topics import Topic
from sightline.errors import CancelReason
from sightline.model.parts import Part


class PairAsked(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="asked"):
    """A question was sent as a new pair at the end. `replaces` is the pair that it replaces: one that failed, or whose
    question was changed."""

    pair: MessagePair
    replaces: str = ""


class PairAnswered(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="answered"):
    """The answer arrived; an earlier one is kept."""

    id: str
    answer: ChatAnswer


class PairFailed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="failed"):
    """There is no answer, or only part of one."""

    id: str
    trouble: Trouble
    partial: ChatAnswer | None = None
    exchange: str = ""


class PairCancelled(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cancelled"):
    """It was cancelled, usually by the user; what had arrived stays, marked as partial."""

    id: str
    partial: ChatAnswer | None = None
    exchange: str = ""
    reason: CancelReason = "user"


class PairReasked(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="reasked"):
    """The same question was sent again at its place, perhaps to another model. The answer stays until a new one has
    arrived."""

    id: str
    model: str = ""


class RunJoined(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="run_joined"):
    """A run with tools answers it: a new one, or one that was interrupted and is resumed. The pair is sending again."""

    id: str
    run: str


class AnswerSwapped(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="swapped"):
    """An earlier answer became the answer, and the answer became the last of the earlier ones."""

    id: str
    index: int = -1


class PairEdited(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="edited"):
    """The user changed the text; None is unchanged."""

    id: str
    user_text: str | None = None
    assistant_text: str | None = None
    attachments: tuple[Part, ...] | None = None


class PairRevised(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="revised"):
    """The user edited the request while it was held, and this was sent of the pair; None is unchanged. The pair may
    still be waiting for its answer."""

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
    """They got so many stars."""

    ids: tuple[str, ...]
    star: Star


class PairsFlagged(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="flagged"):
    """They got this colour."""

    ids: tuple[str, ...]
    flag: Flag


class PairsMoved(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="moved"):
    """They were moved to this topic."""

    ids: tuple[str, ...]
    topic: str


class PairsHandled(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="handled"):
    """The user included or excluded them by hand, or left it to the filter again."""

    ids: tuple[str, ...]
    hand: Hand


Mark: TypeAlias = PairsStarred | PairsFlagged | PairsMoved | PairsHandled
"""What the user notes about pairs, without changing their text."""


class PairsDeleted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="deleted"):
    """They were deleted, and can be restored."""

    ids: tuple[str, ...]


class PairsRestored(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="restored"):
    """They were restored to their places."""

    ids: tuple[str, ...]


class PairsCompacted(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="compacted"):
    """A summary replaced the pairs in its `summary_of`, which are kept."""

    summary: MessagePair


class CompactionUndone(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="compaction_undone"):
    """The pairs are back at their places, and the summary is removed."""

    id: str


class ChatImported(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="imported"):
    """Pairs and their topics were imported, each to its place in time. Those that are here already stay."""

    topics: tuple[Topic, ...]
    pairs: tuple[MessagePair, ...]


Presence: TypeAlias = PairsDeleted | PairsRestored | PairsCompacted | CompactionUndone | ChatImported
"""What changes which pairs there are."""


class TopicAdded(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="topic_added"):
    """A topic was added."""

    topic: Topic


class TopicChanged(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="topic_changed"):
    """A topic got another name, parent, prompt, model or parameters."""

    topic: Topic


class TopicRemoved(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="topic_removed"):
    """An empty topic was removed."""

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
