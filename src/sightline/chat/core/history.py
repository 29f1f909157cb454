"""All pairs and topics of a chat, after the facts so far."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import msgspec

from sightline.chat.core import facts
from sightline.chat.core.matching import PairWords
from sightline.chat.core.pair import MessagePair
from sightline.chat.core.topics import ROOT, Topics
from sightline.errors import Code, Fault

Key: TypeAlias = tuple[float, ...]

_FEW = 64
"""Up to this many pairs are inserted and removed one by one; for more, the list is rebuilt once."""


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """The pairs that a fact changed. With `is_wide` there are so many that everything should be recomputed."""

    ids: tuple[str, ...] = ()
    is_wide: bool = False


Applying: TypeAlias = Callable[[], HistoryChange]


class ChatHistory:
    """The pairs from the oldest to the newest. A fact that is not allowed raises a Fault and changes nothing.

    A pair that was deleted or replaced by a summary is not live; it is kept with its place.
    """

    def __init__(self, known: Iterable[facts.ChatFact] = ()) -> None:
        self.topics = Topics()
        self.words = PairWords()
        self.sending = ""
        """The id of the pair that waits for its answer; there is at most one."""
        self._pairs: dict[str, MessagePair] = {}
        self._keys: dict[str, Key] = {}
        self._live: list[str] = []
        self._deleted: set[str] = set()
        self._summaries: dict[str, str] = {}
        self._count = 0
        self._latest = 0.0
        for fact in known:
            self.apply(fact)

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, pair: str) -> bool:
        return pair in self._pairs

    def __iter__(self) -> Iterator[MessagePair]:
        return map(self._pairs.__getitem__, self._live)

    @property
    def newest(self) -> MessagePair | None:
        return self._pairs[self._live[-1]] if self._live else None

    def get(self, pair: str) -> MessagePair:
        """The pair with this id, live or not."""
        found = self._pairs.get(pair)
        if found is None:
            raise Fault(Code.USAGE, f"there is no pair {pair!r}", hint="It may have been removed in another window.")
        return found

    def latest(self, count: int) -> list[MessagePair]:
        """The newest `count` pairs, newest last."""
        return [self._pairs[each] for each in self._live[max(0, len(self._live) - count) :]]

    def is_live(self, pair: str) -> bool:
        """Whether the pair is neither deleted nor replaced."""
        return pair in self._pairs and pair not in self._deleted and pair not in self._summaries

    def key(self, pair: str) -> Key:
        return self._keys[pair]

    def in_order(self, pairs: Iterable[str]) -> list[MessagePair]:
        """These pairs, each once, oldest first."""
        return [self.get(each) for each in sorted({self.get(each).id for each in pairs}, key=self.key)]

    def apply(self, fact: facts.ChatFact) -> HistoryChange:
        return self.check(fact)()

    def check(self, fact: facts.ChatFact) -> Applying:
        """Check a fact and return a function that applies it. Nothing changes until that is called, and no other fact
        may be applied in between."""
        match fact:
            case facts.PairAsked():
                return self._ask(fact)
            case facts.PairsStarred() | facts.PairsFlagged() | facts.PairsMoved() | facts.PairsHandled():
                return self._mark(fact)
            case facts.PairsDeleted(ids=ids):
                return self._delete(ids)
            case facts.PairsRestored(ids=ids):
                return self._restore(ids)
            case facts.PairsCompacted(summary=summary):
                return self._compact(summary)
            case facts.CompactionUndone(id=summary_id):
                return self._expand(summary_id)
            case facts.ChatImported():
                return self._import(fact)
            case facts.TopicAdded() | facts.TopicChanged() | facts.TopicRemoved():
                return self._change_topics(fact)
            case _:
                return self._event(fact)

    def _event(self, fact: facts.PairEvent) -> Applying:
        pair = self._live_pair(fact.id)
        begins = isinstance(fact, facts.PairReasked) or (isinstance(fact, facts.RunJoined) and pair.state != "sending")
        if begins:
            self._check_quiet()
        changed = facts.pair_after(pair, fact)

        def happen() -> HistoryChange:
            self._pairs[fact.id] = changed
            if changed.state == "sending":
                self.sending = fact.id
            elif fact.id == self.sending:
                self.sending = ""
            return HistoryChange((fact.id,))

        return happen

    def _ask(self, fact: facts.PairAsked) -> Applying:
        pair = msgspec.structs.replace(fact.pair, state="sending", answer=None, trouble=None)
        if pair.id in self._pairs:
            raise Fault(Code.USAGE, f"there is a pair {pair.id!r} already", hint="Give it another id.")
        self._check_quiet()
        self.topics.get(pair.topic)
        gone = (fact.replaces,) if fact.replaces else ()
        for each in gone:
            self._live_pair(each)

        def ask() -> HistoryChange:
            self._remove_live(gone)
            self._deleted.update(gone)
            self._latest = max(self._latest, pair.at)  # even if the clock was set back, a new question comes last
            self._keep(pair, (self._latest, self._next()))
            self._live.append(pair.id)
            self.sending = pair.id
            return HistoryChange((*gone, pair.id))

        return ask

    def _mark(self, fact: facts.Mark) -> Applying:
        pairs = [self.get(each) for each in fact.ids]
        if isinstance(fact, facts.PairsMoved):
            self.topics.get(fact.topic)

        def mark() -> HistoryChange:
            for pair in pairs:
                self._pairs[pair.id] = facts.apply_mark(pair, fact)
            return HistoryChange(fact.ids)

        return mark

    def _delete(self, ids: Sequence[str]) -> Applying:
        ids = tuple(dict.fromkeys(ids))
        for each in ids:
            if self._live_pair(each).state == "sending":
                message = f"the pair {each!r} is waiting for its answer"
                raise Fault(Code.USAGE, message, hint="Stop it first.")

        def delete() -> HistoryChange:
            self._remove_live(ids)
            self._deleted.update(ids)
            return HistoryChange(ids)

        return delete

    def _restore(self, ids: Sequence[str]) -> Applying:
        pairs = [self.get(each) for each in dict.fromkeys(ids) if self._is_restorable(each)]

        def restore() -> HistoryChange:
            for pair in pairs:
                if pair.topic not in self.topics:
                    self._pairs[pair.id] = msgspec.structs.replace(pair, topic=ROOT)
                self._deleted.discard(pair.id)
            back = tuple(pair.id for pair in pairs)
            self._insert_live(back)
            return HistoryChange(back)

        return restore

    def _is_restorable(self, pair: str) -> bool:
        """Whether a pair was deleted. A summary is restored only as long as it stands for its pairs: once that was
        undone, they are back themselves."""
        return pair in self._deleted and all(self._summaries.get(each) == pair for each in self._pairs[pair].summary_of)

    def _compact(self, summary: MessagePair) -> Applying:
        known = self._pairs.get(summary.id)
        is_new = known is None or (bool(known.summary_of) and summary.id in self._deleted)
        if not is_new or len(set(summary.summary_of)) != len(summary.summary_of) or not summary.summary_of:
            message = "a summary is a new pair that replaces others"
            raise Fault(Code.USAGE, message, hint="Choose what to summarize.")
        if any(self._live_pair(each).state == "sending" for each in summary.summary_of):
            message = "a pair that waits for its answer cannot be summarized"
            raise Fault(Code.USAGE, message, hint="Wait for the answer.")
        self.topics.get(summary.topic)

        def compact() -> HistoryChange:
            self._remove_live(summary.summary_of)
            self._summaries.update(dict.fromkeys(summary.summary_of, summary.id))
            self._deleted.discard(summary.id)
            self._keep(summary, (*max(map(self.key, summary.summary_of)), self._next()))
            self._insert_live((summary.id,))
            return HistoryChange((*summary.summary_of, summary.id))

        return compact

    def _expand(self, summary: str) -> Applying:
        pair = self._live_pair(summary)
        originals = pair.summary_of
        if not originals:
            raise Fault(Code.USAGE, f"the pair {summary!r} is not a summary", hint="Choose one.")
        if pair.state == "sending":
            raise Fault(Code.USAGE, f"the pair {summary!r} is waiting for its answer", hint="Stop it first.")

        def expand() -> HistoryChange:
            self._remove_live((summary,))
            self._deleted.add(summary)
            for each in originals:
                del self._summaries[each]
            self._insert_live(originals)
            return HistoryChange((*originals, summary))

        return expand

    def _import(self, fact: facts.ChatImported) -> Applying:
        topics, renamed = self.topics.copy(), dict[str, str]()
        for topic in fact.topics:  # parents come before their children
            parent = renamed.get(topic.parent, topic.parent)
            known = topics.at((*topics.path(parent), topic.name))
            if known is None and topic.id not in topics:
                topics.add(msgspec.structs.replace(topic, parent=parent))
            renamed[topic.id] = topic.id if known is None else known

        def take_in() -> HistoryChange:
            self.topics = topics
            fresh: list[str] = []
            for pair in fact.pairs:
                if pair.id not in self._pairs:
                    home = renamed.get(pair.topic, pair.topic)
                    state = "idle" if pair.state == "sending" else pair.state  # no one waits for that answer here
                    home = home if home in topics else ROOT
                    pair = msgspec.structs.replace(pair, topic=home, state=state, summary_of=())
                    self._keep(pair, (pair.at, self._next()))
                    fresh.append(pair.id)
                    self._latest = max(self._latest, pair.at)
            self._insert_live(fresh)
            return HistoryChange(is_wide=True)

        return take_in

    def _change_topics(self, fact: facts.Growth) -> Applying:
        topics, is_wide = self.topics.copy(), True
        match fact:
            case facts.TopicAdded(topic=topic):
                topics.add(topic)
            case facts.TopicChanged(topic=topic):
                before = topics.get(topic.id)
                is_wide = (before.name, before.parent) != (topic.name, topic.parent)
                topics.change(topic)
            case facts.TopicRemoved(id=topic_id):
                if any(pair.topic == topic_id and pair.id not in self._deleted for pair in self._pairs.values()):
                    name = topics.get(topic_id).name
                    raise Fault(Code.USAGE, f"the topic {name!r} has pairs", hint="Move or delete them first.")
                topics.remove(topic_id)
                is_wide = False
            case unreachable:
                assert_never(unreachable)

        def grow() -> HistoryChange:
            self.topics = topics
            return HistoryChange(is_wide=is_wide)

        return grow

    def _live_pair(self, pair: str) -> MessagePair:
        found = self.get(pair)
        if not self.is_live(pair):
            raise Fault(Code.USAGE, f"the pair {pair!r} is not there any more", hint="Bring it back first.")
        return found

    def _check_quiet(self) -> None:
        if self.sending:
            hint, details = "Wait for it, or stop it.", {"code": "already_sending"}
            raise Fault(Code.USAGE, "an answer is still arriving", hint=hint, status=409, details=details)

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _keep(self, pair: MessagePair, key: Key) -> None:
        self._pairs[pair.id] = pair
        self._keys[pair.id] = key

    def _insert_live(self, ids: Sequence[str]) -> None:
        if len(ids) > _FEW:  # usually there is nothing between them
            start = bisect_left(self._live, min(map(self.key, ids)), key=self.key)
            end = bisect_left(self._live, max(map(self.key, ids)), lo=start, key=self.key)
            self._live[start:end] = sorted((*self._live[start:end], *ids), key=self.key)
            return
        for each in ids:
            insort(self._live, each, key=self.key)

    def _remove_live(self, ids: Sequence[str]) -> None:
        if len(ids) > _FEW:
            gone = frozenset(ids)
            self._live = [each for each in self._live if each not in gone]
            return
        for each in ids:
            del self._live[bisect_left(self._live, self.key(each), key=self.key)]
