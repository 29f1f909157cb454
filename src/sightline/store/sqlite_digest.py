"""Digests of requests and replies in an SQLite record: words, titles, and the conversations that they continue."""

import hashlib
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from sightline.dialects.stored import exchange_in
from sightline.store.digest import Digest, DigestValues, columns_of_digest, read_history, storable
from sightline.store.digest_reader import Beginning, DigestReader
from sightline.store.entries import Codec
from sightline.store.sqlite_database import select_among
from sightline.store.sqlite_words import append_words
from sightline.store.words import Said, searchable

_UNREADABLE = (UnicodeError, ValueError, OverflowError, RecursionError)
"""Errors in one exchange that must not keep others from being read."""
_LOG = logging.getLogger(__name__)
_row = itemgetter(0)
_BEGINNINGS, _LIKELY = 256, 4
_MOST_REMEMBERED = 4096
"""The most beginnings and texts to remember as noted."""


@lru_cache(maxsize=32)
def _hash_text(text: str) -> bytes:
    """The hash of a text. Cached, because the same long instructions come with many requests."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


TELLS_NOTHING = columns_of_digest(Digest())
"""What is stored of a request that cannot be read."""
_Asked: TypeAlias = tuple[int, str, str, str, bytes, Digest]
"""A request that was read: its row, exchange, session, dialect, body and digest."""


class SqliteDigests:
    """Collects the requests and replies of a transaction, and links them at its end to each other and to those on
    record."""

    def __init__(self, connection: sqlite3.Connection, codec: Codec) -> None:
        self._connection = connection
        self._codec = codec
        self._reader = DigestReader()
        self._asked: list[_Asked] = []
        self._named: list[tuple[str, int, str]] = []
        self._words: list[Said[int]] = []
        self._noted: set[bytes] = set()
        """Hashes of texts whose words are on record."""
        self._begun: set[bytes] = set()
        """Beginnings of conversations whose words are on record."""

    def forget(self) -> None:
        """Forget what is on record, because it was changed elsewhere."""
        self._noted.clear()
        self._begun.clear()

    def rest(self) -> None:
        """Free the memory of what was read. The next turn of a conversation is then read completely."""
        self._reader = DigestReader()
        self._asked, self._named, self._words = [], [], []

    def begin(self) -> None:
        """Begin a transaction."""
        self._asked, self._named, self._words = [], [], []
        if len(self._noted) + len(self._begun) > _MOST_REMEMBERED:
            self.forget()

    def add_request(
        self, row: int, exchange: str, session: str, dialect: str, body: bytes, beginning: Beginning | None = None
    ) -> DigestValues:
        """Read a request and return the result of `columns_of_digest`, or `TELLS_NOTHING` if it cannot be read."""
        try:
            digest = self._reader.read(dialect, body, beginning)
        except _UNREADABLE:
            _LOG.exception("a request could not be read for search; it is on record all the same")
            return TELLS_NOTHING
        self._asked.append((row, exchange, session, dialect, body, digest))
        return columns_of_digest(digest)

    def add_reply(self, row: int, exchange: str, words: str, name: str = "") -> None:
        """Add the words of a reply, and the id by which a later request can refer to it."""
        if words:
            self._words.append((row, searchable(words)))
        if name:
            self._named.append((storable(name), row, exchange))

    def link(self) -> dict[int, str]:
        """Find the exchange that each added request continues, by its row, and note the words of the requests. The rows
        of this transaction need not be inserted yet."""
        previous = self._find_previous()
        new = self._note_texts(previous)
        said = [(asked[0], asked[5].new_text) for asked in self._asked]
        if new:
            said = [(row, "\n".join([*new[row], words]) if row in new else words) for row, words in said]
        self._words += [(row, searchable(words)) for row, words in said if words]
        return previous

    def end(self) -> None:
        """Write the words and the ids of the replies, after the rows are inserted."""
        append_words(self._connection, self._codec, sorted(self._words, key=_row))
        self._connection.executemany(
            "UPDATE exchanges SET reply_id = ? WHERE seq = ?", [(name, row) for name, row, _ in self._named]
        )
        # A request that refers to a reply may have been read before it.
        self._connection.executemany(
            "UPDATE exchanges SET previous = ?3"
            " WHERE continues = ?1 AND continues <> '' AND previous = '' AND seq > ?2",
            self._named,
        )

    def _find_previous(self) -> dict[int, str]:
        """Find the predecessor of each request: the latest exchange whose reply it refers to by id, or else the latest
        one of its session with the longest beginning of its conversation."""
        beginnings: dict[int, tuple[bytes, ...]] = {}
        likely: set[bytes] = set()
        long: list[tuple[str, tuple[bytes, ...]]] = []
        names: list[str] = []
        ends: set[bytes] = set()
        for row, _, session, _, _, digest in self._asked:
            thread = digest.thread
            if len(thread) > 1 and not digest.is_side:
                beginnings[row] = own = thread[-_BEGINNINGS:-1]
                # Usually only the model's last turn, and what led to it, is new.
                likely.update(own[-_LIKELY:])
                if len(own) > _LIKELY:
                    long.append((session, own))
            if digest.continues:
                names.append(digest.continues)
            ends.update(thread[-1:])
        latest = self._find_threads(likely)
        if not (latest or names or long) and likely.isdisjoint(ends):
            return {}
        called = self._find_called(names)
        others = [
            own[:-_LIKELY] for session, own in long if not any((session, name) in latest for name in own[-_LIKELY:])
        ]
        latest |= self._find_threads(set().union(*others))
        known = {name for _, name in latest}
        previous: dict[int, str] = {}
        for row, exchange, session, _, _, digest in self._asked:
            earlier = [each for each in called.get(digest.continues, ()) if each[0] < row] if digest.continues else ()
            if earlier:
                previous[row] = max(earlier)[1]
            elif not known.isdisjoint(
                own := beginnings.get(row, ())
            ):  # most requests continue nothing, and some are long
                longest = (latest.get((session, name)) for name in reversed(own))
                previous[row] = next(filter(None, longest), "")
            if digest.thread and not digest.is_side:
                latest[session, digest.thread[-1]] = exchange
                known.add(digest.thread[-1])
        return previous

    def _find_called(self, names: Sequence[str]) -> Mapping[str, list[tuple[int, str]]]:
        """The rows and ids of the exchanges whose replies have these ids, by reply id."""
        found: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        if not names:
            return found
        spellings = {storable(name): name for name in names}
        for name, row, exchange in self._named:
            if name in spellings:
                found[spellings[name]].append((row, exchange))
        by_name = "SELECT reply_id, seq, id FROM exchanges WHERE reply_id <> '' AND reply_id IN ({})"
        for name, row, exchange in select_among(self._connection, by_name, spellings):
            found[spellings[name]].append((row, exchange))
        own = {exchange_in(name): name for name in spellings.values()}
        for row, exchange in select_among(self._connection, "SELECT seq, id FROM exchanges WHERE id IN ({})", own):
            found[own[exchange]].append((row, exchange))
        for row, exchange, *_ in self._asked:
            if exchange in own:
                found[own[exchange]].append((row, exchange))
        return found

    def _find_threads(self, names: Collection[bytes]) -> dict[tuple[str, bytes], str]:
        """The latest exchange of each session with one of these fingerprints, by session and fingerprint."""
        # With max(), SQLite takes the other columns from the row with the maximum.
        latest = "SELECT session, thread, id, max(seq) FROM exchanges WHERE thread IN ({}) GROUP BY session, thread"
        found = select_among(
            self._connection, latest, list(map(bytearray, names))
        )  # `sqlite3` looks for an adapter of `bytes`, but not of `bytearray`
        return {(session, name): exchange for session, name, exchange, _ in found}

    def _read_history(self, dialect: str, body: bytes, thread: tuple[bytes, ...]) -> list[str]:
        """The earlier texts of a conversation whose beginning is not on record. A beginning that several requests
        share, as in a batch of examples, is read once, because their bodies may be large."""
        if thread[-2] in self._begun:
            return []
        self._begun.add(thread[-2])
        return read_history(dialect, body)

    def _note_texts(self, previous: Mapping[int, str]) -> dict[int, list[str]]:
        """Find the instructions and earlier texts of each row that no exchange has had before, and note them: the same
        texts come with many requests."""
        first: dict[bytes, tuple[int, str]] = {}
        for row, _, _, dialect, body, digest in self._asked:
            texts: Iterable[str] = digest.system
            if digest.has_history and not previous.get(row):
                texts = chain(texts, self._read_history(dialect, body, digest.thread))
            for text in texts:
                if (name := _hash_text(text)) not in self._noted:
                    first.setdefault(name, (row, text))
        known = {
            name
            for (name,) in select_among(self._connection, "SELECT hash FROM instructions WHERE hash IN ({})", first)
        }
        new = {name: each for name, each in first.items() if name not in known}
        self._connection.executemany(
            "INSERT INTO instructions VALUES (?,?)", [(name, row) for name, (row, _) in new.items()]
        )
        self._noted |= first.keys()
        found: defaultdict[int, list[str]] = defaultdict(list)
        for row, text in new.values():
            found[row].append(text)
        return found
