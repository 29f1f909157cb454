"""Files uploaded with a question: from base64 to parts, by what their bytes are."""

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from sightline.catalog.problem import quote_word
from sightline.chat.api.bodies import AttachmentWanted
from sightline.chat.core.attachment import attachment
from sightline.errors import Code, Fault
from sightline.model.parts import Part
from sightline.wire.media_type import is_text, sniff

_MADE_OF_BYTES: Final = ("image", "audio", "video")
_ENDINGS: Final[Mapping[str, str]] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "application/pdf": "pdf",
}
_LONGEST_NAME: Final = 200


def parts_from_uploads(wanted: tuple[AttachmentWanted, ...]) -> tuple[Part, ...]:
    """A part for each file, in their order."""
    return tuple(_part(number, each) for number, each in enumerate(wanted, 1))


def _part(number: int, wanted: AttachmentWanted) -> Part:
    name = "".join(letter if letter.isprintable() else "?" for letter in wanted.name)[:_LONGEST_NAME].strip()
    name = name or f"file {number}"
    try:
        data = base64.b64decode(wanted.data, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(f"{name}: the data is no base64", "Send the bytes of the file in base64.") from None
    if not data:
        raise _wrong(f"{name}: the file is empty", "Leave it out, or check that it was saved.")
    claimed, real = wanted.media_type.partition(";")[0].strip().lower(), sniff(data, name)
    if _is_another(claimed, real):
        found = "text" if is_text(real) else real
        raise _wrong(
            f"{name}: it claims to be {quote_word(claimed)}, but its bytes are {found}",
            "Check that the file is whole, and attach it again under the right name.",
        )
    try:
        return attachment(data, _with_extension(name, real))
    except Fault as fault:
        fault.status = 422
        raise


def _is_another(claimed: str, real: str) -> bool:
    """Whether a file is not of the kind it claims to be. An image under the name of another image type is accepted as
    what it is."""
    if claimed == "image/svg+xml":
        return not is_text(real)
    main = claimed.partition("/")[0]
    if main in _MADE_OF_BYTES:
        return not real.startswith(f"{main}/") or is_text(real)
    return claimed == "application/pdf" and real != claimed


def _with_extension(name: str, kind: str) -> str:
    ending = _ENDINGS.get(kind)
    return name if "." in name or ending is None else f"{name}.{ending}"


def _wrong(message: str, hint: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, message, hint=hint, status=422)
