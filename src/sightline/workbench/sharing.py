"""Sharing and importing on the page: archives of exchanges with a preview of what is replaced in them, and files that
are imported into the record."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.errors import Code, Fault
from sightline.exchange.recording.archives import ExchangeExport, Imported, WriteFormat, import_archive
from sightline.exchange.recording.formats import FORMS, ShareFormat, plugin_format
from sightline.exchange.recording.records import read_selection
from sightline.exchange.recording.section_texts import SectionKind
from sightline.exchange.recording.sharing import Redactor
from sightline.model.json import JsonObject
from sightline.store.store import Store
from sightline.web import replies
from sightline.web.asgi import Receive, WebResponse
from sightline.web.bodies import read_body, read_bytes

_MOST_TO_IMPORT = 512 << 20
_SHOWN = 160
_MOST_SECTIONS = 1_000
"""How many sections are listed; more are too many to choose from one by one, and a kind selects all of them."""


class ShareOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"form": "as"}):
    """Which exchanges, by a filter or by their ids, in which format. With `redact`, sensitive values are replaced:
    those that are found, those that match `patterns`, and the texts of `sections`, which are kinds or ids of single
    sections; the values and sections in `keep` stay. With `preview`, only list them."""

    filter: str = ""
    exchanges: tuple[str, ...] = ()
    form: str = "html"
    redact: bool = True
    sections: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    preview: bool = False


class ReplacedValue(msgspec.Struct, frozen=True):
    """A replaced value: its kind, its replacement, and in how many places it occurs. If it is long, `value` is only its
    beginning, and it cannot be kept."""

    kind: str
    value: str
    stand_in: str
    places: int
    is_cut: bool = False


class SectionShown(msgspec.Struct, frozen=True):
    """A section that can be left out: its kind, its beginning or the call that it is, its size in characters, and in
    how many requests and replies it occurs."""

    id: str
    kind: SectionKind
    label: str
    characters: int
    places: int


class SharePreview(msgspec.Struct, frozen=True):
    """How many exchanges there are, what is replaced in them, and their sections. `all_sections` is how many sections
    there are; if there are very many, `sections` has only the first of them."""

    exchanges: int
    found: tuple[ReplacedValue, ...]
    sections: tuple[SectionShown, ...] = ()
    all_sections: int = 0


@dataclass(frozen=True, slots=True)
class SharingCalls:
    """The calls `POST /api/share` and `POST /api/import`. `patterns` are those of the configuration. Plug-ins add
    `finders` of values that must not be shared and `exporters` of other formats, both by name, and `read_foreign`,
    which converts a file of another format to an HTTP archive, or returns None; without plug-ins it is None. `formats`
    are all file formats, by name."""

    store: Store
    catalog: Catalog
    now: Callable[[], float]
    patterns: Sequence[str]
    finders: Mapping[str, Callable[[str], Iterable[str]]]
    exporters: Mapping[str, WriteFormat]
    read_foreign: Callable[[bytes], JsonObject | None] | None

    @property
    def formats(self) -> Mapping[str, ShareFormat]:
        return {**FORMS, **{name: plugin_format(name) for name in self.exporters}}

    async def share(self, receive: Receive) -> SharePreview | WebResponse:
        order = await read_body(receive, ShareOrder, status=400)
        wanted = read_selection(order.filter, order.exchanges)
        form = self.formats.get(order.form)
        if form is None:
            hint = f"Formats are {', '.join(self.formats)}."
            raise Fault(Code.INVALID_REQUEST, f"there is no format {order.form[:80]!r}", hint=hint, status=400)
        await self.store.settle()
        redactor = None
        try:
            if order.redact:
                redactor = Redactor(
                    (*self.patterns, *order.patterns),
                    self.finders,
                    sections=order.sections,
                    kept=order.keep,
                    lists_sections=order.preview,
                )
            export = ExchangeExport(self.store, wanted, self.now(), self.catalog, redactor, self.exporters)
            count = await export.look_through() if order.preview or redactor is not None else 1
        except Fault as fault:
            fault.status = 422
            raise
        if order.preview:
            return SharePreview(count, ()) if redactor is None else _preview(count, redactor)
        if not count:
            raise Fault(Code.INVALID_REQUEST, "no exchange matches", hint="Change the filter.", status=404)
        data = b"".join([piece async for piece in export.write(order.form)])
        name = f"sightline-{datetime.fromtimestamp(self.now(), UTC):%Y%m%d-%H%M%S}.{form.suffix}"
        # Its content must not run as a page of ours: it is saved, never shown.
        response = replies.data(data, form.media_type.encode())
        response.headers.append((b"content-disposition", f'attachment; filename="{name}"'.encode()))
        return response

    async def import_file(self, receive: Receive) -> Imported:
        """Import an archive of Sightline, an HTTP archive or a file of a format that a plug-in knows into the
        record."""
        data = await read_bytes(receive, _MOST_TO_IMPORT)
        try:
            return await import_archive(self.store, io.BytesIO(data), self.catalog, self.read_foreign)
        except Fault as fault:
            fault.status = 422
            raise


def _preview(count: int, redactor: Redactor) -> SharePreview:
    sections = list(redactor.sections_listed.values())
    return SharePreview(
        count,
        tuple(
            ReplacedValue(each.kind, each.value[:_SHOWN], each.stand_in, each.places, is_cut=len(each.value) > _SHOWN)
            for each in redactor.found.values()
        ),
        tuple(msgspec.convert(each, SectionShown, from_attributes=True) for each in sections[:_MOST_SECTIONS]),
        len(sections),
    )
