"""Embeddings: the requests of OpenAI's API and of Google's as one value, and the vectors of their replies.

OpenAI's `/embeddings` takes one text or several; Google's `:embedContent` takes one content and `:batchEmbedContents` a
list of such requests. https://platform.openai.com/docs/api-reference/embeddings, https://ai.google.dev/api/embeddings
"""

import base64
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter

import msgspec

from sightline.dialects.fields import as_list, as_object, object_at, wrong
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.reply import Usage
from sightline.model.report import Report, Severity

_BATCH = ":batchEmbedContents"


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """The texts to embed. `is_single`: the reply has one vector and not a list. `in_base64`: vectors are sent as
    bytes."""

    texts: tuple[str, ...]
    dimensions: int | None = None
    is_single: bool = False
    in_base64: bool = False
    report: Report = field(default_factory=Report)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The vectors in the order of the texts, and the token count of the prompt, None if it was not counted."""

    vectors: tuple[tuple[float, ...], ...]
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingsApi:
    """Where an API embeds texts, and how its bodies are read and written. `read_request` also gets the path."""

    path: str
    read_request: Callable[[Json, str], EmbeddingRequest]
    write_request: Callable[[EmbeddingRequest, str], JsonObject]
    read_reply: Callable[[Json], Embeddings]
    write_reply: Callable[[Embeddings, EmbeddingRequest, str], JsonObject]


# --- OpenAI -----------------------------------------------------------------------------------------


def read_openai_request(document: Json, _path: str) -> EmbeddingRequest:
    """Read the request of an OpenAI client. Raises a fault if it is not a request, or gives tokens instead of texts."""
    body = as_object(document, "")
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        hint = "Send texts: lists of tokens mean something to one model alone."
        raise Fault(Code.INVALID_REQUEST, "the input is neither a text nor a list of texts", hint=hint, status=400)
    report = Report()
    for name, value in body.items():
        if name not in ("input", "model", "dimensions", "encoding_format") and value is not None:
            severity: Severity = "identity" if name == "user" else "option"
            report.lose(f"/{name}", name, "the other API has no such field", severity)
    dimensions = body.get("dimensions")
    return EmbeddingRequest(
        tuple(str(text) for text in texts),
        dimensions if isinstance(dimensions, int) else None,
        in_base64=body.get("encoding_format") == "base64",
        report=report,
    )


def write_openai_request(request: EmbeddingRequest, model: str) -> JsonObject:
    """The request body for OpenAI's path."""
    body: JsonObject = {"model": model, "input": list(request.texts), "encoding_format": "float"}
    return body if request.dimensions is None else body | {"dimensions": request.dimensions}


def read_openai_reply(document: Json) -> Embeddings:
    """The vectors of OpenAI's reply."""
    body = as_object(document, "")
    items = [as_object(item, f"/data/{n}") for n, item in enumerate(as_list(body.get("data"), "/data"))]
    places = [n if (index := _count(item.get("index"))) is None else index for n, item in enumerate(items)]
    ordered = [item for _, item in sorted(zip(places, items, strict=True), key=itemgetter(0))]
    tokens = _count(object_at(body, "usage").get("prompt_tokens"))
    return Embeddings(tuple(_vector(item.get("embedding"), "/data") for item in ordered), tokens)


def write_openai_reply(embeddings: Embeddings, request: EmbeddingRequest, model: str) -> JsonObject:
    """The reply for an OpenAI client."""
    data: list[Json] = []
    for index, vector in enumerate(embeddings.vectors):
        packed = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        data.append({"object": "embedding", "index": index, "embedding": packed if request.in_base64 else list(vector)})
    tokens = embeddings.tokens or 0
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


# --- Google -----------------------------------------------------------------------------------------


def read_gemini_request(document: Json, path: str) -> EmbeddingRequest:
    """Read the request of a Google client."""
    is_batch = path.rstrip("/").endswith(_BATCH)
    body = as_object(document, "")
    requests = as_list(body.get("requests"), "/requests") if is_batch else [body]
    report, texts, dimensions = Report(), [], None
    for number, each in enumerate(requests):
        at = f"/requests/{number}" if is_batch else ""
        request = as_object(each, at)
        texts.append(_text(request.get("content"), f"{at}/content", report))
        options = {**request, **object_at(request, "embedContentConfig")}
        wanted = options.get("outputDimensionality", options.get("output_dimensionality"))
        dimensions = wanted if isinstance(wanted, int) else dimensions
        for name in ("taskType", "task_type", "title", "autoTruncate"):
            if options.get(name) is not None:
                report.lose(f"{at}/{name}", name, "the other API has no such field", "option")
    return EmbeddingRequest(tuple(texts), dimensions, is_single=not is_batch, report=report)


def _text(content: Json, at: str, report: Report) -> str:
    """The text of a content; anything else in it is reported as lost."""
    if isinstance(content, str):
        return content
    parts = content.get("parts") if isinstance(content, dict) else None
    words: list[str] = []
    for number, part in enumerate(parts if isinstance(parts, list) else [parts]):
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            words.append(text)
        else:
            report.lose(f"{at}/parts/{number}", "a part that is no text", "the other API embeds text", "content")
    return "\n".join(words)


def write_gemini_request(request: EmbeddingRequest, model: str) -> JsonObject:
    """The request body for Google's `:batchEmbedContents`."""
    name = f"models/{model.removeprefix('models/')}"
    more: JsonObject = {} if request.dimensions is None else {"outputDimensionality": request.dimensions}
    requests: list[Json] = [{"model": name, "content": {"parts": [{"text": text}]}, **more} for text in request.texts]
    return {"requests": requests}


def read_gemini_reply(document: Json) -> Embeddings:
    """The vectors of Google's reply, to one request or to several."""
    body = as_object(document, "")
    found = body.get("embeddings")
    items = [body.get("embedding")] if found is None else as_list(found, "/embeddings")
    vectors = tuple(_vector(as_object(item, "/embeddings").get("values"), "/embeddings") for item in items)
    return Embeddings(vectors, _count(object_at(body, "usageMetadata").get("promptTokenCount")))


def write_gemini_reply(embeddings: Embeddings, request: EmbeddingRequest, _model: str) -> JsonObject:
    """The reply for a Google client."""
    vectors: list[Json] = [{"values": list(vector)} for vector in embeddings.vectors]
    body: JsonObject = {"embedding": vectors[0]} if request.is_single and vectors else {"embeddings": vectors}
    return body if embeddings.tokens is None else body | {"usageMetadata": {"promptTokenCount": embeddings.tokens}}


class _RawCounts(msgspec.Struct, rename={"metadata": "usageMetadata"}):
    """The fields in which the replies of both APIs have their counts; everything else is skipped."""

    usage: JsonObject | None = None
    metadata: JsonObject | None = None


def read_raw_usage(data: bytes) -> Usage | None:
    """The token counts in a reply that no dialect reads: embeddings, compactions, images. None if it has none."""
    try:
        found = msgspec.json.decode(data, type=_RawCounts)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    counts = {**(found.usage or {}), **(found.metadata or {})}
    asked = _first_count(counts, "prompt_tokens", "input_tokens", "promptTokenCount")
    if asked is None:
        return None
    written = _first_count(counts, "completion_tokens", "output_tokens", "candidatesTokenCount")
    return Usage(input_tokens=asked, output_tokens=written or 0)


def _first_count(counts: JsonObject, *names: str) -> int | None:
    return next((count for name in names if (count := _count(counts.get(name))) is not None), None)


# --- both -------------------------------------------------------------------------------------------


def _vector(value: Json, at: str) -> tuple[float, ...]:
    try:
        if isinstance(value, str):
            data = base64.b64decode(value, validate=True)
            return struct.unpack(f"<{len(data) // 4}f", data)
        # A server whose model has overflowed sends null for what is no number.
        return msgspec.convert(as_list(value, at), tuple[float, ...])
    except (ValueError, struct.error):
        raise wrong(value, at, "a vector of numbers") from None


def _count(value: Json) -> int | None:
    return value if type(value) is int else None


OPENAI = EmbeddingsApi("/embeddings", read_openai_request, write_openai_request, read_openai_reply, write_openai_reply)
GEMINI = EmbeddingsApi(
    f"/models/{{model}}{_BATCH}", read_gemini_request, write_gemini_request, read_gemini_reply, write_gemini_reply
)
