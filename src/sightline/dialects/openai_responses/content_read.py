"""Reading the content of a message or of a tool's output: a string, or a list of parts."""

from collections.abc import Callable, Mapping

from sightline.dialects.fields import as_object, opt_list, opt_str, rest, str_of, wrong
from sightline.dialects.media import from_url
from sightline.dialects.openai_responses.annotations import read_annotation
from sightline.dialects.openai_responses.names import NAME
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Audio, Document, FileId, Image, Inline, Link, Opaque, Part, Refusal, Text

_INPUT_TEXT = frozenset({"type", "text"})
_OUTPUT_TEXT = frozenset({"type", "text", "annotations"})
_LOGPROBS = frozenset({"logprobs"})
_NO_LOGPROBS: JsonObject = {"logprobs": None}
"""How an empty list of them is remembered, which says nothing anywhere else."""
_REFUSAL = frozenset({"type", "refusal"})
_AUDIO = frozenset({"type", "input_audio"})
_SOUND = frozenset({"data", "format"})

INPUT, OUTPUT = "input_text", "output_text"


def read_content(content: Json, at: str, text: str = INPUT) -> tuple[tuple[Part, ...], bool]:
    """The parts of a content field, and whether it was one string. `text` is the usual type of its texts."""
    if type(content) is str:
        return (Text(content, at=at),), True
    if type(content) is list:
        return tuple(read_part(value, f"{at}/{index}", text) for index, value in enumerate(content)), False
    raise wrong(content, at, "a string or a list of parts")


def read_part(value: Json, at: str, text: str = INPUT) -> Part:
    """One part of a content list."""
    holder = as_object(value, at)
    kind = str_of(holder, "type", at)
    if kind in (INPUT, OUTPUT):
        return _read_text(holder, at, kind, text)
    reader = _READERS.get(kind)
    part = None if reader is None else reader(holder, at)
    return Opaque(NAME, holder, at=at) if part is None else part


def _read_text(holder: JsonObject, at: str, kind: str, usual: str) -> Text:
    """A text. Its extras tell a spelling that is not how we would write it; null stands for what was absent."""
    extras = rest(holder, _INPUT_TEXT if kind == INPUT else _OUTPUT_TEXT)
    if kind != usual:
        extras = {**extras, "type": kind}
    if "logprobs" in extras and extras["logprobs"] in ([], None):
        extras = {**rest(extras, _LOGPROBS), **({} if extras["logprobs"] is None else _NO_LOGPROBS)}
    if kind == INPUT:
        return Text(str_of(holder, "text", at), at=at, extras=extras)
    if holder.get("annotations") is None:
        extras = {**extras, "annotations": None}
    annotations = opt_list(holder, "annotations", at)
    return Text(
        str_of(holder, "text", at),
        tuple(read_annotation(value, f"{at}/annotations/{index}") for index, value in enumerate(annotations)),
        at=at,
        extras=extras,
    )


def _read_refusal(holder: JsonObject, at: str) -> Refusal:
    return Refusal(str_of(holder, "refusal", at), at=at, extras=rest(holder, _REFUSAL))


def _read_image(holder: JsonObject, at: str) -> Image | None:
    url, file_id = opt_str(holder, "image_url", at), opt_str(holder, "file_id", at)
    detail = opt_str(holder, "detail", at)
    if url is not None:
        return Image(from_url(url), detail, at=at, extras=rest(holder, frozenset({"type", "image_url", "detail"})))
    if file_id is not None:
        return Image(FileId(file_id), detail, at=at, extras=rest(holder, frozenset({"type", "file_id", "detail"})))
    return None


def _read_file(holder: JsonObject, at: str) -> Document | None:
    title = opt_str(holder, "filename", at)
    for key in ("file_data", "file_url", "file_id"):
        told = opt_str(holder, key, at)
        if told is not None:
            extras = rest(holder, frozenset({"type", "filename", key}))
            return Document(_file_source(key, told), title, at=at, extras=extras)
    return None


def _file_source(key: str, content: str) -> Inline | Link | FileId:
    if key == "file_id":
        return FileId(content)
    source = from_url(content)
    if key == "file_data" and isinstance(source, Link):
        return Inline("", content)  # bytes without the head of a data URL
    return source if key == "file_data" else Link(content)


def _read_audio(holder: JsonObject, at: str) -> Audio | None:
    place = f"{at}/input_audio"
    inner = as_object(holder.get("input_audio"), place)
    data, form = str_of(inner, "data", place), str_of(inner, "format", place)
    spare = rest(inner, _SOUND)
    extras = rest(holder, _AUDIO)
    return Audio(Inline(f"audio/{form}", data), at=at, extras={**extras, "input_audio": spare} if spare else extras)


_READERS: Mapping[str, Callable[[JsonObject, str], Part | None]] = {
    "refusal": _read_refusal,
    "input_image": _read_image,
    "input_file": _read_file,
    "input_audio": _read_audio,
}
"""Each gives None for a part that names no source; that stays whole."""
