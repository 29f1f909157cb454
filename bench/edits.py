"""What the editor's answer to one edit costs, as ratios to decoding and encoding the same body once.

The body has a megabyte and about 400 items. Each job includes the new bytes, their hash, the request read in them and
every section.
"""

from collections.abc import Callable
from functools import partial
from itertools import count

import msgspec

from bench import documents
from bench.codecs import bare
from bench.timing import medians, milliseconds, ratio, table
from sightline.editing.draft import Draft, EditHistory
from sightline.editing.operations import Delete, Edit, Restore, SetText, Undo
from sightline.editing.section import Section

SIZE = 1_000_000
ITEMS = 400
ROUNDS = 25
AIM = 3.0
"""A keystroke took 2.0 to 2.5 times as long as the bare JSON in November 2026, 4 to 5 ms. Every draft is read anew; a
section is made anew if anything that it is made of has changed."""
DIALECTS = list(documents.TELLINGS)
_END_OF_LISTING = "naïve".encode()
_LINE = b"the same words of a long listing again; "


def body(name: str, size: int = SIZE) -> bytes:
    """A request of about a megabyte, or of this size, and 400 items: a shorter session whose listings are longer."""
    key = next(iter(documents.LAST_WORDS[name].split("/")[1:]))
    document = msgspec.json.decode(documents.request(name, SIZE))
    items = document[key]
    document[key] = [*items[: ITEMS - 1 - (ITEMS - len(items) - 1) % 2], items[-1]]
    short = msgspec.json.encode(document)
    listings = short.count(_END_OF_LISTING)
    filler = _LINE * ((size - len(short)) // (listings * len(_LINE)))
    return short.replace(_END_OF_LISTING, filler + _END_OF_LISTING)


class Desk:
    """One body under edit, and the answers to what a person does to it."""

    def __init__(self, name: str) -> None:
        self.data = body(name)
        self.name = name
        self.editing = EditHistory(Draft.of(self.data, name))
        asked = [section for section in self.editing.draft.sections if section.kind == "user"]
        self.section: Section = asked[len(asked) // 2]
        results = [section for section in self.editing.draft.sections if section.kind == "tool_result"]
        self.result = results[len(results) // 2] if results else self.section
        self._numbers = count()

    def opened(self) -> object:
        """The view of a request that just came."""
        return _view(Draft.of(self.data, self.name))

    def typed(self, section: str) -> object:
        """The view after one more keystroke."""
        text = f"What one more letter makes of it {next(self._numbers)}"
        return self._after(SetText(section=section, text=text))

    def deleted(self) -> object:
        """The view after a call and its result were deleted; then they come back."""
        view = self._after(Delete(section=self.result.id))
        self.editing.apply(Restore(section=self.result.id))
        return view

    def undone(self) -> object:
        """The view after a step back."""
        self.editing.apply(SetText(section=self.section.id, text=f"again {next(self._numbers)}"))
        self.editing.apply(Undo())
        return _view(self.editing.draft)

    def _after(self, operation: Edit) -> object:
        return _view(self.editing.apply(operation))


def _view(draft: Draft) -> object:
    return draft.sha256, draft.is_dirty, draft.request, draft.sections


def report() -> str:
    header = [
        "request",
        "bytes",
        "sections",
        "bare JSON",
        "open",
        "set_text",
        "in a result",
        "delete + restore",
        "undo",
    ]
    rows = [["(aim)", "", "", "", "", *[f"<= {ratio(AIM)}"] * 2, "", ""]]
    for name in DIALECTS:
        desk = Desk(name)
        jobs: dict[str, Callable[[], object]] = {
            "bare": partial(bare, desk.data),
            "open": desk.opened,
            "set_text": partial(desk.typed, desk.section.id),
            "result": partial(desk.typed, desk.result.id),
            "delete": desk.deleted,
            "undo": desk.undone,
        }
        times = medians(jobs, ROUNDS)
        least = times.pop("bare")
        sections = len(desk.editing.draft.sections)
        figures = [ratio(taken / least) for taken in times.values()]
        rows.append([name, f"{len(desk.data):,}", f"{sections:,}", milliseconds(least), *figures])
    return table("Edits, as ratios to msgspec.json.decode + encode of the same bytes", header, rows)
