"""Write the page's types of the API from the values that the server answers with: `python tools/api_types.py`.

With `--check` nothing is written, and the status says whether the file is what it would be.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias, get_args

import msgspec
from api_calls import api_answers
from msgspec import inspect

from sightline.editing.masks import Mask
from sightline.editing.operations import HoldOperation
from sightline.exchange.interception.core.rules import InterceptionRule
from sightline.exchange.interception.holds import Expand
from sightline.model.exchange import Fact
from sightline.store.summary import Summary
from sightline.web.asgi import WebResponse
from sightline.workbench import shapes
from sightline.workbench.exchange_views import ALWAYS
from sightline.workbench.sharing import SharePreview

FILE = Path(__file__).resolve().parent.parent / "src" / "sightline" / "ui" / "api-types.d.ts"
OTHERS = (shapes.Changed, shapes.ExchangeDetails, SharePreview, Summary, InterceptionRule, Mask)
"""Values of the API that no annotation of a call names."""
SHAPED = {
    "GET health": "{ version: string }",
    "GET exchanges": "{ exchanges: Line[] }",
    "POST exchanges": "{ id: string }",
    "GET exchanges/*": "View",
    "POST exchanges/*/edits": "Changed",
    "POST exchanges/*/replay": "{ id: string }",
    **{f"{method} masks": "Mask[]" for method in ("GET", "PUT", "POST")},
}
"""What calls answer with that are annotated as plain JSON."""
SUFFIXES = {
    "sightline.model.exchange": "Fact",
    "sightline.editing.operations": "Operation",
    "sightline.exchange.interception.holds": "Operation",
    "sightline.chat.core.plan": "Telemetry",
}
"""Classes that only their module distinguishes in Python get a suffix in the page's types."""

NAMES = {"Summary": "Line", "Parameters": "TopicParameters"}
FIELDS = {
    ("ExchangeDetails", "facts"): "NotedFact[]",
    ("Line", "status"): "number | null",
}
HEAD = """\
// Written by tools/api_types.py from the values that the server answers with. Do not edit it by hand.

/** Any JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
"""
TAIL = """\
/** A fact with its number and time. The `data` of a frame is in base64, and left out where `frames=0` was asked for. */
export type NotedFact = Fact & { n: number; at: number; exchange?: string; size?: number; fault?: FaultShown };

/** One exchange as the page opens it. */
export type View = Omit<Line, keyof Changed | keyof ExchangeDetails> &
  Changed &
  Required<Omit<ExchangeDetails, "fault">> &
  Pick<ExchangeDetails, "fault">;

/** A piece of an answer. */
export type Block = AnswerShown["blocks"][number];

/** What every refusal is. */
export interface Refusal {
  error: { code: string; message: string; hint: string; details?: { [key: string]: Json } };
}
"""


def written() -> str:
    """The whole file."""
    calls = [each for each in api_answers() if each.method in TABLES]
    typed = [each for each in calls if f"{each.method} {each.path}" not in SHAPED and _is_typed(each.kind)]
    kinds = inspect.multi_type_info([*OTHERS, HoldOperation | Expand, Fact, *(each.kind for each in typed)])
    found: dict[str, Fielded] = {}
    for kind in kinds:
        _collect(kind, found)
    pieces = [HEAD, *(_interface(name, found[name]) for name in sorted(found))]
    for name, union in zip(("Operation", "Fact"), kinds[len(OTHERS) :], strict=False):
        pieces.append(f"export type {name} = {_type(union)};\n")
    answers = {
        f"{each.method} {each.path}": _type(kind) for each, kind in zip(typed, kinds[-len(typed) :], strict=True)
    }
    return "\n".join([*pieces, TAIL, *_tables(answers | SHAPED)])


TABLES = {"GET": "GetAnswers", "PUT": "PutAnswers", "POST": "PostAnswers"}


def _tables(answers: dict[str, str]) -> Iterator[str]:
    """What calls answer with, by method. A `*` is any text, also with a slash: so the longest paths come first, and
    those with a name before those with any."""
    for method, name in TABLES.items():
        paths = [call.split(" ")[1] for call in answers if call.startswith(f"{method} ")]
        paths.sort(key=lambda path: (-path.count("/"), [part == "*" for part in path.split("/")], path))
        lines = [f"  [`/api/{path.replace('*', '${string}')}`, {answers[f'{method} {path}']}]," for path in paths]
        yield "\n".join([f"/** What `{method}` answers with, by path. */", f"export type {name} = [", *lines, "];", ""])


def _is_typed(kind: Any) -> bool:
    """Whether an annotation says more than that it is JSON or a whole response."""
    return kind not in (Any, object, WebResponse) and all(_is_typed(each) for each in get_args(kind))


Fielded: TypeAlias = inspect.StructType | inspect.DataclassType


def _collect(kind: inspect.Type, found: dict[str, Fielded]) -> None:
    match kind:
        case inspect.StructType() | inspect.DataclassType():
            name = _name(kind.cls)
            if name in found:
                if found[name].cls is not kind.cls:
                    raise SystemExit(f"two values are called {name}: name one of them otherwise")
                return
            found[name] = kind
            for field in kind.fields:
                _collect(field.type, found)
        case inspect.UnionType(types=types):
            for each in types:
                _collect(each, found)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            _collect(item, found)
        case inspect.TupleType(item_types=items):
            for each in items:
                _collect(each, found)
        case inspect.DictType(value_type=value):
            _collect(value, found)
        case _:
            pass


def _name(cls: type) -> str:
    name = NAMES.get(cls.__name__, cls.__name__)
    suffix = SUFFIXES.get(cls.__module__, "")
    return name if name.endswith(suffix) else f"{name}{suffix}"


def _interface(name: str, struct: Fielded) -> str:
    lines = [f"export interface {name} {{"]
    if isinstance(struct, inspect.StructType) and struct.tag is not None:
        lines.append(f"  {struct.tag_field}: {msgspec.json.encode(struct.tag).decode()};")
    lines += [f"  {_field(name, struct.cls, each)}" for each in struct.fields]
    words = " ".join((struct.cls.__doc__ or "").split())
    return "\n".join([f"/** {words} */", *lines, "}", ""])


def _field(name: str, cls: type, field: inspect.Field) -> str:
    config = getattr(cls, "__struct_config__", None)  # a dataclass has none
    is_strict = config is not None and config.forbid_unknown_fields
    # What may be left out: by the server where it is as usual, and by a caller where it has a default.
    is_optional = not field.required and (is_strict or (config is not None and config.omit_defaults))
    if name == "Line":
        is_optional = field.name not in (*ALWAYS, "status")
    is_optional = is_optional or isinstance(field.type, inspect.BytesType)
    kind = FIELDS.get((name, field.name)) or _type(field.type)
    if is_optional and not is_strict:
        kind = kind.removesuffix(" | null")
    return f"{field.encode_name}{'?' if is_optional else ''}: {kind};"


def _type(kind: inspect.Type) -> str:
    match kind:
        case inspect.StructType(cls=cls) | inspect.DataclassType(cls=cls):
            return _name(cls)
        case inspect.StrType() | inspect.BytesType():
            return "string"
        case inspect.IntType() | inspect.FloatType():
            return "number"
        case inspect.BoolType():
            return "boolean"
        case inspect.NoneType():
            return "null"
        case inspect.LiteralType(values=values):
            return " | ".join(msgspec.json.encode(value).decode() for value in sorted(values, key=str))
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return f"{_bracket_ipv6(_type(item))}[]"
        case inspect.TupleType(item_types=items):
            return f"[{', '.join(map(_type, items))}]"
        case inspect.DictType(value_type=value):
            return f"{{ [key: string]: {_type(value)} }}"
        case inspect.UnionType(types=types):
            return _union(types)
        case _:
            return "Json"


def _union(types: tuple[inspect.Type, ...]) -> str:
    if any(isinstance(each, inspect.DictType | inspect.AnyType) for each in types) and len(types) > 2:
        return "Json"
    named = sorted((_type(each) for each in types), key=lambda word: word == "null")
    return " | ".join(dict.fromkeys(named))


def _bracket_ipv6(word: str) -> str:
    return f"({word})" if " | " in word else word


def main() -> int:
    """Write it, or look whether it is as it should be."""
    text = written()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, "utf-8")
        return 0
    is_fresh = FILE.exists() and FILE.read_text("utf-8") == text
    if not is_fresh:
        sys.stderr.write(f"{FILE.name} is not what the server answers with: run python tools/api_types.py\n")
    return 0 if is_fresh else 1


if __name__ == "__main__":
    sys.exit(main())
