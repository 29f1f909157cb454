"""Detects the type of a file: by its first bytes, then by whether it is text, never by its name alone."""

import re
from collections.abc import Mapping

BINARY = "application/octet-stream"

_MAGIC: tuple[tuple[re.Pattern[bytes], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), kind)
    for pattern, kind in (
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"GIF8[79]a", "image/gif"),
        (rb"RIFF....WEBP", "image/webp"),
        (rb"BM....\0\0\0\0", "image/bmp"),
        (rb"II\*\0|MM\0\*", "image/tiff"),
        (rb"\0...ftyp(?:avif|avis)", "image/avif"),
        (rb"\0...ftyp(?:hei[cxms]|hev[cxms]|mif1|msf1)", "image/heic"),
        (rb"\0...ftypM4[AB] ", "audio/mp4"),
        (rb"\0...ftyp", "video/mp4"),
        (rb"%PDF-", "application/pdf"),
        (rb"RIFF....WAVE", "audio/wav"),
        (rb"RIFF....AVI ", "video/x-msvideo"),
        # An ID3 tag with its version, or a layer III frame with a valid bit rate and sample rate.
        (rb"ID3[\x02-\x04]|\xff[\xe2\xe3\xf2\xf3\xfa\xfb][\x10-\x1b\x20-\x2b\x30-\x3b\x40-\x4b\x50-\x5b\x60-\x6b\x70-\x7b"
         rb"\x80-\x8b\x90-\x9b\xa0-\xab\xb0-\xbb\xc0-\xcb\xd0-\xdb\xe0-\xeb]", "audio/mpeg"),
        (rb"\xff[\xf0\xf1\xf8\xf9]", "audio/aac"),
        (rb"OggS\0", "audio/ogg"),
        (rb"fLaC[\x00\x80]", "audio/flac"),
        (rb"\x1aE\xdf\xa3", "video/webm"),
        (rb"PK(?:\x03\x04|\x05\x06)", "application/zip"),
        (rb"\x1f\x8b\x08", "application/gzip"),
    )
)  # fmt: skip

_OFFICE = "application/vnd.openxmlformats-officedocument"
_ZIP_TYPES: Mapping[str, str] = {
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "epub": "application/epub+zip",
}

_TEXT_TYPES: Mapping[str, str] = {
    "c": "text/x-c",
    "cpp": "text/x-c++",
    "css": "text/css",
    "csv": "text/csv",
    "go": "text/x-go",
    "h": "text/x-c",
    "htm": "text/html",
    "html": "text/html",
    "java": "text/x-java",
    "js": "text/javascript",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "markdown": "text/markdown",
    "md": "text/markdown",
    "mjs": "text/javascript",
    "ndjson": "application/x-ndjson",
    "py": "text/x-python",
    "rs": "text/x-rust",
    "rst": "text/x-rst",
    "sh": "text/x-shellscript",
    "sql": "application/sql",
    "svg": "image/svg+xml",
    "tex": "text/x-tex",
    "toml": "application/toml",
    "ts": "text/x-typescript",
    "tsv": "text/tab-separated-values",
    "tsx": "text/x-typescript",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}
_WORDS = frozenset(_TEXT_TYPES.values())

_MARKS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def sniff(data: bytes, name: str) -> str:
    """The media type of these bytes. The name decides only between types that the bytes leave open."""
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    for pattern, kind in _MAGIC:
        if pattern.match(data):
            return _ZIP_TYPES.get(suffix, kind) if kind == "application/zip" else kind
    return _TEXT_TYPES.get(suffix, "text/plain") if _is_text(data) else BINARY


def is_text(media_type: str) -> bool:
    """Whether a file of this type is text that can be read as it is."""
    return media_type.startswith("text/") or media_type in _WORDS


def encoding_of(data: bytes) -> str:
    """The text encoding of these bytes: that of their byte order mark, or UTF-8 without one."""
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "utf-8-sig")


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode(encoding_of(data))
    except UnicodeDecodeError:
        return False
