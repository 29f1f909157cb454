"""Share and import on the page: archives of exchanges with a preview of what is replaced in them, and files read back
into the record."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.errors import Code, Fault
from sightline.exchange.recording.archives import FORMS, ArchiveForm, ExchangeExport, Imported, import_archive
from sightline.exchange.recording.sharing import Redactor, SectionKind
from sightline.filters.parsing import parse
from sightline.store.store import Store
from sightline.web import replies
from sightline.web.asgi import Receive, WebResponse
from sightline.web.bodies import read_body, read_bytes

_MOST_TO_IMPORT = 512 << 20
_SHOWN = 160


class ShareOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"form": "as"}):
    """Which exchanges, in which format. With `redact`, what should not leave is replaced: what is found, what matches
    `patterns`, and the texts of `sections`; what is in `keep` stays. With `preview`, only list it."""

    filter: str
    form: ArchiveForm = "html"
    redact: bool = True
    sections: tuple[SectionKind, ...] = ()
    patterns: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    preview: bool = False


class ReplacedValue(msgspec.Struct, frozen=True):
    """A value that is replaced: of which kind, by what, and in how many places. Of a long one `value` is the
    beginning, and then it cannot be kept."""

    kind: str
    value: str
    stand_in: str
    places: int
    is_cut: bool = False


class SharePreview(msgspec.Struct, frozen=True):
    """How many exchanges there are, and what is replaced in them."""

    exchanges: int
    found: tuple[ReplacedValue, ...]


class SharingCalls:
    """The calls `POST /api/share` and `POST /api/import`. `patterns` are those of the configuration, `finders` those of
    plug-ins."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        now: Callable[[], float],
        *,
        patterns: Sequence[str] = (),
        finders: Mapping[str, Callable[[str], Iterable[str]]] | None = None,
    ) -> None:
        self._store, self._catalog, self._now = store, catalog, now
        self._patterns, self._finders = patterns, finders

    async def share(self, receive: Receive) -> SharePreview | WebResponse:
        """The preview, or the file."""
        order = await read_body(receive, ShareOrder, status=400)
        await self._store.settle()
        redactor = None
        if order.redact:
            try:
                patterns = (*self._patterns, *order.patterns)
                redactor = Redactor(patterns, self._finders, sections=order.sections, kept=order.keep)
            except Fault as fault:
                fault.status = 422
                raise
        export = ExchangeExport(self._store, parse(order.filter), self._now(), self._catalog, redactor)
        count = await export.look_through() if order.preview or redactor is not None else 1
        if order.preview:
            found = () if redactor is None else redactor.found.values()
            return SharePreview(
                count,
                tuple(
                    ReplacedValue(
                        each.kind, each.value[:_SHOWN], each.stand_in, each.places, is_cut=len(each.value) > _SHOWN
                    )
                    for each in found
                ),
            )
        if not count:
            raise Fault(Code.INVALID_REQUEST, "no exchange matches", hint="Change the filter.", status=404)
        data = b"".join([piece async for piece in export.write(order.form)])
        suffix, media_type = FORMS[order.form]
        name = f"sightline-{datetime.fromtimestamp(self._now(), UTC):%Y%m%d-%H%M%S}.{suffix}"
        # A page of ours must not run what is in it: it is saved, never shown here.
        response = replies.data(data, media_type.encode())
        response.headers.append((b"content-disposition", f'attachment; filename="{name}"'.encode()))
        return response

    async def import_file(self, receive: Receive) -> Imported:
        """Read an archive of Sightline or an HTTP archive into the record."""
        data = await read_bytes(receive, _MOST_TO_IMPORT)
        try:
            return await import_archive(self._store, io.BytesIO(data), self._catalog)
        except Fault as fault:
            fault.status = 422
            raise
