"""Tokens of a text: by the model's own vocabulary, by the nearest public one, or by classes of characters.

Vocabularies agree about English words and disagree about digits, rare scripts and symbols. So each class has three
weights (the least, the likely, the most), fitted to eight public vocabularies on the texts of
`tests/contract/sample_texts.py`. The classes are derived from the UTF-8 bytes by translation and counting, both at the
speed of C: a megabyte takes a few milliseconds.

OpenAI's models see a JSON Schema as type declarations, so tools and output schemas are counted as that text.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from sightline.catalog.facts import Facts, Tokenizer
from sightline.model.json import Json, JsonObject
from sightline.model.request import FunctionTool
from sightline.tokens.estimate import NOTHING, Estimate, between, exactly
from sightline.wire.cache import BoundedCache

if TYPE_CHECKING:
    from splintr import AnyTokenizer


ENGLISH = 4.6
"""Characters per token of plain English prose, by the weights."""

_LOWER, _UPPER, _DIGIT, _SPACE, _LINE, _MARK, _REST = b"luds\np-"
_BEYOND = 0x80

_SCRIPTS: Mapping[str, tuple[int, int, tuple[float, float, float]]] = {
    "accented": (0xC2, 0xCD, (1.279, 1.853, 2.894)),
    "greek": (0xCE, 0xCF, (0.441, 0.521, 1.057)),
    "cyrillic": (0xD0, 0xD4, (0.290, 0.366, 0.586)),
    "hebrew": (0xD5, 0xD7, (0.504, 0.644, 1.207)),
    "arabic": (0xD8, 0xDF, (0.316, 0.444, 0.852)),
    "indic": (0xE0, 0xE0, (0.360, 0.560, 1.032)),
    "twice_accented": (0xE1, 0xE1, (0.000, 0.000, 0.508)),
    "symbol": (0xE2, 0xE2, (1.779, 2.092, 2.390)),
    "kana": (0xE3, 0xE3, (0.601, 0.854, 1.106)),
    "han": (0xE4, 0xE9, (0.562, 0.743, 1.397)),
    "hangul": (0xEA, 0xED, (0.695, 0.945, 1.439)),
    "wide": (0xEE, 0xEF, (0.135, 0.135, 0.135)),
    "pictograph": (0xF0, 0xF4, (1.082, 2.150, 3.017)),
}
"""The classes beyond ASCII: the range of the first bytes of their characters, which are blocks of Unicode, roughly by
script, and their weights."""

WEIGHTS: Mapping[str, tuple[float, float, float]] = {
    "letter": (0.238, 0.247, 0.259),
    "capital": (0.031, 0.063, 0.155),
    "switch": (0.566, 0.673, 0.673),
    "digit": (0.440, 0.538, 0.996),
    "mark": (0.247, 0.286, 0.290),
    "run": (0.591, 0.684, 0.756),
    "line": (0.000, 0.081, 0.643),
    "indent": (0.000, 0.000, 0.333),
    **{name: weights for name, (_, _, weights) in _SCRIPTS.items()},
}
"""Tokens per occurrence: the least of the eight vocabularies, all eight together, the most."""

_MARGIN = 0.2
_ROUNDING = 2
"""How much a vocabulary that is not one of the eight may differ from them: as a share, and by rounding."""


def _table() -> bytes:
    table = bytearray([_MARK]) * 128 + bytearray([_REST]) * 128
    ascii_only = bytes(range(128)).decode()
    kinds = ((str.islower, _LOWER), (str.isupper, _UPPER), (str.isdigit, _DIGIT), (str.isspace, _SPACE))
    for is_kind, kind in kinds:
        for letter in filter(is_kind, ascii_only):
            table[ord(letter)] = kind
    table[ord("\n")] = _LINE
    for place, (first, last, _) in enumerate(_SCRIPTS.values()):
        for code in range(first, last + 1):
            table[code] = _BEYOND + place
    return bytes(table)


_CLASSES = _table()
_AROUND_DIGITS = bytes.maketrans(b"ud", b"ld")
_AROUND_MARKS = bytes([_MARK if code == _MARK else _REST for code in range(256)])


def features(text: str) -> dict[str, int]:
    """How often each class occurs. `switch` counts the places inside a run of letters and digits where one kind follows
    another, `run` runs of punctuation, `indent` pairs of spaces."""
    kinds = b"\n" + text.encode("utf-8", "replace").translate(_CLASSES)
    # Counting two bytes is half as fast as counting one, so irrelevant classes are merged into one before that.
    capitals, digits, marks = kinds.count(b"u"), kinds.count(b"d"), kinds.count(b"p")
    switches = kinds.count(b"lu") if capitals else 0
    if digits:
        around = kinds.translate(_AROUND_DIGITS)
        switches += around.count(b"ld") + around.count(b"dl")
    found = {
        "letter": kinds.count(b"l") + capitals,
        "capital": capitals,
        "switch": switches,
        "digit": digits,
        "mark": marks,
        "run": kinds.translate(_AROUND_MARKS).count(b"-p") if marks else 0,
        "line": kinds.count(b"\n") - 1,
        "indent": kinds.count(b"ss"),
    }
    if not text.isascii():
        for place, name in enumerate(_SCRIPTS):
            found[name] = kinds.count(_BEYOND + place)
    return found


TextKind: TypeAlias = Literal["words", "figures", "scripts"]
"""What a text is mostly made of, as far as vocabularies differ about it: words of Latin letters and code, numbers, or
other scripts."""
_MANY_DIGITS, _MANY_BEYOND = 0.12, 0.15


def kind_of(texts: Iterable[str]) -> TextKind:
    """What these texts together are mostly made of."""
    whole = beyond = digits = 0
    for text in texts:
        data = text.encode("utf-8", "replace")
        whole += len(data)
        digits += data.translate(_CLASSES).count(b"d")
        beyond += 0 if text.isascii() else len(data) - len(text)
    if beyond > whole * _MANY_BEYOND:
        return "scripts"
    return "figures" if digits > whole * _MANY_DIGITS else "words"


def count_by_classes(text: str, chars_per_token: float | None = None) -> Estimate:
    """Tokens by classes of characters. `chars_per_token` is that of plain English prose, if known; other texts are
    scaled accordingly."""
    if not text:
        return NOTHING
    scale = 1.0 if chars_per_token is None else ENGLISH / chars_per_token
    low = likely = high = 0.0
    for name, times in features(text).items():
        if times:
            least, usual, most = WEIGHTS[name]
            low += times * least
            likely += times * usual
            high += times * most
    least_of_all = max(1, low * scale * (1 - _MARGIN) - _ROUNDING)
    return between(least_of_all, max(1, likely * scale), high * scale * (1 + _MARGIN) + _ROUNDING, "characters")


NAMES: frozenset[str] = frozenset(get_args(Tokenizer)) - {""}
"""The vocabularies that a model's facts may name. If they name none, tokens are counted by classes of characters."""


_ELSEWHERE: dict[str, Callable[[], bytes]] = {"smollm2": lambda: b""}
"""The vocabularies that are not part of the program, and how each is read: a `tokenizer.json`, or empty bytes."""


def read_vocabulary_from(name: str, read: Callable[[], bytes]) -> None:
    """Register how a vocabulary is read when it is first needed. `read` returns empty bytes if it cannot be read."""
    _ELSEWHERE[name] = read
    _load.cache_clear()


def has_vocabulary(name: str) -> bool:
    """Whether texts can be counted by this vocabulary here."""
    return name in NAMES and (name not in _ELSEWHERE or _load(name) is not None)


def count_tokens(name: str, text: str) -> int:
    """How many tokens the text has. Text that looks like a control token is ordinary text, as it is for the providers;
    for the server of the embedded model it is a control token."""
    tokenizer = _load(name)
    assert tokenizer is not None, "the caller has asked whether it is there"
    encode = tokenizer.encode if name in _ELSEWHERE else tokenizer.encode_ordinary
    try:
        return len(encode(text))
    except UnicodeEncodeError:
        return len(encode(join_surrogates(text)))


def join_surrogates(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced, as a reader of its JSON would see it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@cache
def _load(name: str) -> "AnyTokenizer | None":
    import splintr  # imported here, because its library takes longer to load than a command's help takes to print

    if name not in _ELSEWHERE:
        return splintr.Tokenizer.from_pretrained(name)
    return splintr.from_json_bytes(data) if (data := _ELSEWHERE[name]()) else None


SPREAD = 0.15
_OPENAI = frozenset({"o200k_base", "cl100k_base"})
_REMEMBERED_TEXTS = 16_384


class TextCounter:
    """Counts texts and caches the counts of the latest, so that a keystroke costs only one text."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._counted: BoundedCache[tuple[int, int], Estimate] = BoundedCache(_REMEMBERED_TEXTS)
        """By hash and length of the text: the texts themselves would take megabytes."""

    @property
    def is_exact(self) -> bool:
        """Whether the vocabulary is the model's own."""
        return has_vocabulary(self._facts.tokenizer)

    @property
    def frames_are_known(self) -> bool:
        """Whether the tokens around messages are published; for other models they were measured on some endpoints."""
        return self._facts.tokenizer in _OPENAI

    @property
    def spread(self) -> float:
        """The share by which another model's vocabulary may be off."""
        return SPREAD if self._facts.token_spread is None else self._facts.token_spread

    def count(self, text: str) -> Estimate:
        """Tokens of the text by itself."""
        if not text:
            return NOTHING
        key = hash(text), len(text)
        known = self._counted.get(key)
        if known is None:
            known = self._fresh(text)
            self._counted.put(key, known)
        return known

    def _fresh(self, text: str) -> Estimate:
        facts = self._facts
        if self.is_exact:
            return exactly(count_tokens(facts.tokenizer, text), facts.tokenizer)
        if not has_vocabulary(facts.nearest_tokenizer):
            return count_by_classes(text, facts.chars_per_token)
        ratio = facts.token_ratio or 1.0
        likely = count_tokens(facts.nearest_tokenizer, text) * ratio
        # Where vocabularies disagree (digits, rare scripts, symbols), another one's count is no better than the
        # classes.
        classes = count_by_classes(text)
        low = min(likely * (1 - self.spread) - 1, classes.low * ratio)
        high = max(likely * (1 + self.spread) + 1, classes.high * ratio)
        return between(low, likely, high, f"like {facts.nearest_tokenizer}")


_DEEPEST = 16
_REFERENCES = 200
LONGEST = 1_000_000
"""The approximate limit of characters to write, which is more than any model reads; the rest is `any`."""


def declarations(tools: tuple[FunctionTool, ...]) -> str:
    """The functions of a request as one namespace of types."""
    lines = ["namespace functions {", ""]
    left = LONGEST
    for tool in tools:
        lines += [f"// {line}" for line in (tool.description or "").splitlines()]
        schema = tool.schema or {}
        writer = _Writer(schema, left)
        members = list(writer.members(schema, 0))
        left = writer.left
        if members:
            lines += [f"type {tool.name} = (_: {{", *members, "}) => any;", ""]
        else:
            lines += [f"type {tool.name} = () => any;", ""]
    return "\n".join([*lines, "} // namespace functions"])


def declaration(schema: JsonObject) -> str:
    """One schema as a type."""
    return _Writer(schema, LONGEST).type(schema, 0)


class _Writer:
    """Writes one schema. References are followed a limited number of times: some schemas are infinite.

    `left` is how many characters may still be written.
    """

    def __init__(self, root: JsonObject, left: int) -> None:
        self.left = left
        self._root = root
        self._references = _REFERENCES

    def members(self, schema: JsonObject, depth: int) -> Iterator[str]:
        properties, required = schema.get("properties"), schema.get("required")
        if not isinstance(properties, dict):
            return
        needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else frozenset()
        for name, member in properties.items():
            if self.left <= 0:
                return
            if isinstance(member, dict) and isinstance(about := member.get("description"), str):
                yield from (f"// {line}" for line in self._spend(about).splitlines())
            line = f"{self._spend(name)}{'' if name in needed else '?'}: {self.type(member, depth + 1)},"
            if isinstance(member, dict) and "default" in member and self.left > 0:
                line += f" // default: {self._json(member['default'])}"
            yield line

    def type(self, schema: Json, depth: int) -> str:
        if not isinstance(schema, dict) or depth > _DEEPEST or self.left <= 0:
            return self._spend("any")
        if isinstance(reference := schema.get("$ref"), str):
            return self.type(self._resolve(reference), depth + 1)
        if isinstance(values := schema.get("enum"), list):
            return " | ".join(self._json(value) for value in values)
        if "const" in schema:
            return self._json(schema["const"])
        for several in ("anyOf", "oneOf", "allOf"):
            if isinstance(kinds := schema.get(several), list):
                return " | ".join(self.type(kind, depth + 1) for kind in kinds)
        named = schema.get("type")
        if isinstance(named, list):
            kinds_named = dict.fromkeys(kind if isinstance(kind, str) else "" for kind in named)
            return " | ".join(self._simple(kind, schema, depth) for kind in kinds_named)
        return self._simple(named, schema, depth)

    def _simple(self, kind: Json, schema: JsonObject, depth: int) -> str:
        match kind:
            case "string" | "boolean" | "null" | "number":
                return self._spend(str(kind))
            case "integer":
                return self._spend("number")
            case "array":
                return f"{self.type(schema.get('items'), depth + 1)}[]"
            case "object":
                members = list(self.members(schema, depth))
                return "\n".join(["{", *members, "}"]) if members else "object"
            case _:
                return self._spend("any")

    def _json(self, value: Json) -> str:
        return self._spend(json.dumps(value, ensure_ascii=False))

    def _spend(self, text: str) -> str:
        self.left -= len(text)
        return text

    def _resolve(self, reference: str) -> Json:
        self._references -= 1
        value: Json = self._root if self._references >= 0 else None
        for step in filter(None, reference.removeprefix("#").split("/")):
            if not isinstance(value, dict):
                return None
            value = value.get(step)
        return value
