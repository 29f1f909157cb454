from datetime import date
from math import inf, nan
from typing import Annotated, ClassVar, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Model
from sightline.catalog.problem import ConfigLocation, ConfigProblem
from sightline.catalog.provider import DialectName, Provider, Route
from sightline.catalog.reading import REST, SELF, TypedReader, describe_type, key, names_of, read, read_value, type_of
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.settings import Settings

DIALECTS = ("round", "flat")


class Inner(msgspec.Struct, kw_only=True):
    kind: Literal["round", "flat"]
    size: Annotated[float, msgspec.Meta(gt=0)] = 1.0


class Sample(msgspec.Struct, kw_only=True, rename={"as_": "as"}):
    text: str = ""
    as_: str = ""
    flag: bool = False
    count: Annotated[int, msgspec.Meta(ge=0, le=9)] | None = None
    free: int = 0
    rate: float = 0.0
    month: Annotated[str, msgspec.Meta(pattern=r"^\d{4}$", description="a year such as 2026")] = "2026"
    names: tuple[str, ...] = ()
    inner: Inner | None = None
    by_name: dict[str, Inner] = {}
    by_kind: dict[DialectName, str] = {}
    spoken: DialectName | None = None


def nowhere(path: object) -> ConfigLocation:
    return ConfigLocation("t.toml", 3)


def told(tree: object, kind: type = Sample) -> list[str]:
    _, problems = read(tree, kind, nowhere, ("it",), dialects=DIALECTS)
    assert all(problem.file == "t.toml" and problem.line == 3 for problem in problems)
    return [problem.message for problem in problems]


def test_a_tree_becomes_the_struct() -> None:
    tree = {
        "text": "a",
        "as": "b",
        "flag": True,
        "count": 9,
        "rate": 2,
        "month": "1999",
        "names": ["x", "y"],
        "inner": {"kind": "flat", "size": 0.5},
        "by_name": {"one": {"kind": "round"}},
        "by_kind": {"flat": "z"},
        "spoken": "round",
    }
    value, problems = read(tree, Sample, nowhere, dialects=DIALECTS)
    assert not problems
    assert value == Sample(
        text="a",
        as_="b",
        flag=True,
        count=9,
        rate=2.0,
        month="1999",
        names=("x", "y"),
        inner=Inner(kind="flat", size=0.5),
        by_name={"one": Inner(kind="round")},
        by_kind={"flat": "z"},
        spoken="round",
    )


def test_an_unknown_key_names_the_nearest_known_one() -> None:
    _, (problem,) = read({"base_ur": "x"}, Provider, nowhere, ("providers", "acme"))
    assert problem == ConfigProblem(
        "t.toml", 3, "providers.acme.base_ur", 'providers.acme has no key "base_ur"', 'Did you mean "base_url"?'
    )


def test_an_unknown_key_that_resembles_nothing_gets_the_list() -> None:
    _, (problem,) = read({"kind": "flat", "qqqq": 1}, Inner, nowhere, ("it",))
    assert problem.hint == "Known keys: kind, size."


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"text": 1}, "it.text must be text, not 1"),
        ({"text": True}, "it.text must be text, not true"),
        ({"flag": 0}, "it.flag must be true or false, not 0"),
        ({"flag": ""}, "it.flag must be true or false, not empty text"),
        ({"count": "5"}, "it.count must be a whole number from 0 to 9, not text"),
        ({"count": 10}, "it.count must be a whole number from 0 to 9, not 10"),
        ({"count": -1}, "it.count must be a whole number from 0 to 9, not -1"),
        ({"count": True}, "it.count must be a whole number from 0 to 9, not true"),
        ({"count": 1.5}, "it.count must be a whole number from 0 to 9, not 1.5"),
        ({"free": 2**63}, "it.free must be a whole number, not 9223372036854775808"),
        ({"rate": inf}, "it.rate must be a number, not inf"),
        ({"rate": nan}, "it.rate must be a number, not nan"),
        ({"rate": False}, "it.rate must be a number, not false"),
        ({"month": "May"}, "it.month must be a year such as 2026, not text"),
        ({"names": "x"}, "it.names must be a list, each text, not text"),
        ({"names": [date(2026, 1, 1)]}, "it.names[0] must be text, not a date or a time"),
        ({"inner": []}, "it.inner must be a table, not an empty list"),
        ({"inner": {}}, 'it.inner lacks the key "kind"'),
        ({"inner": {"kind": "round", "size": 0}}, "it.inner.size must be a number above 0, not 0"),
        ({"inner": {"kind": "rund"}}, 'it.inner.kind must be one of "flat", "round", not "rund"'),
        ({"inner": {"kind": 3}}, 'it.inner.kind must be one of "flat", "round", not 3'),
        ({"by_name": {"x": 1}}, "it.by_name.x must be a table, not 1"),
        ({"by_name": 1}, "it.by_name must be a table, not 1"),
        ({"spoken": "rond"}, 'it.spoken must be one of "flat", "round", not "rond"'),
        ({"by_kind": {"rond": "x"}}, 'it.by_kind has no key "rond"'),
        ({"by_kind": {"round": {}}}, "it.by_kind.round must be text, not a table"),
        ({"by_kind": 1}, "it.by_kind must be a table, each value text, not 1"),
        ([], "it must be a table, not an empty list"),
    ],
)
def test_a_wrong_value_says_what_was_expected_and_what_was_found(tree: object, message: str) -> None:
    assert told(tree) == [message]


def test_text_in_a_wrong_place_is_not_repeated() -> None:
    assert not any("sk-secret" in message for message in told({"count": "sk-secret", "names": "sk-secret"}))


def test_all_mistakes_are_reported_and_valid_values_are_read() -> None:
    tree = {"text": 1, "nmaes": [], "names": ["a", 2, "c"], "inner": {"knd": "flat"}, "rate": 0.5}
    value, problems = read(tree, Sample, nowhere)
    assert len(problems) == 5
    assert value == Sample(names=("a", "c"), rate=0.5)


def test_nothing_can_be_made_of_something_else() -> None:
    assert read("text", Sample, nowhere)[0] is None


def test_the_range_is_part_of_what_is_expected() -> None:
    assert describe_type(type_of(Annotated[int, msgspec.Meta(ge=1)])) == "a whole number, 1 or more"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = [*Provider.__struct_fields__, *Model.__struct_fields__, *Route.__struct_fields__]


@given(
    st.dictionaries(st.sampled_from(NAMES) | st.text(), ANYTHING), st.sampled_from([Provider, Model, Route, Settings])
)
def test_whatever_the_tree_what_is_read_is_what_the_types_say(tree: dict[str, object], kind: type) -> None:
    value, problems = read(tree, kind, nowhere)
    if value is not None:
        msgspec.convert(msgspec.to_builtins(value), kind)
    if not problems:
        assert isinstance(value, kind)


def test_the_catalogue_itself_can_be_read() -> None:
    tree = {"providers": {"a": {"base_url": "http://x"}}, "routes": [{"provider": "a", "as": "b"}]}
    value, problems = read(tree, Catalog, nowhere)
    assert not problems
    assert value == Catalog(providers={"a": Provider(base_url="http://x")}, routes=(Route(provider="a", as_="b"),))


class Circle(msgspec.Struct, tag_field="type", tag="circle"):
    radius: float


class Square(msgspec.Struct, tag_field="type", tag="square"):
    side: float = 1.0


class Wrapped:
    """A value that is kept as it comes."""


Size = Annotated[float, msgspec.Meta(ge=0)]


class Drawing(msgspec.Struct, kw_only=True):
    KEY_HINTS: ClassVar[dict[str, str]] = {"colour": "Write color."}

    shape: Annotated[Circle | Square | None, key(instead={"round": "circle"})] = None
    words: str | Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=2)] = ""
    limit: bool | Annotated[Size, key(hint="Write false for none.")] = False
    color: Annotated[str, key(aliases=("tint", "hue"))] = ""
    width: Annotated[int, key(aliases=("w",), first_wins=True)] = 0
    by_name: dict[str, str] = {}
    data: Json = None
    note: Wrapped | None = None
    others: Annotated[dict[str, Json], REST] = {}
    source: Annotated[Json, SELF] = None


class Strict(msgspec.Struct):
    KEY_HINTS: ClassVar[dict[str, str]] = {"colour": "Write color."}
    color: Annotated[str, key(hint="Write color: red.")]


class Notes(TypedReader):
    own_prefix = "x-"

    def __init__(self) -> None:
        self.seen: list[tuple[object, str, str]] = []

    def report(self, path: object, message: str, hint: str, *, is_key: bool = False) -> None:
        self.seen.append((path, message, hint))


def test_unions_are_read_by_shape_and_by_tag() -> None:
    kept = Wrapped()
    tree = {"shape": {"type": "square"}, "words": ["a"], "limit": 2, "tint": "red", "data": [1], "note": kept, "z": 1}
    value, problems = read(tree, Drawing, nowhere)
    assert not problems
    assert value == Drawing(
        shape=Square(), words=("a",), limit=2.0, color="red", data=[1], note=kept, others={"z": 1}, source=tree
    )
    tree = {"words": "a", "limit": True, "data": None, "color": None, "w": 3, "width": 4}
    assert read(tree, Drawing, nowhere)[0] == Drawing(words="a", limit=True, width=3, source=tree)


@pytest.mark.parametrize(
    ("tree", "message", "hint"),
    [
        ({"shape": {}}, 'it.shape lacks the key "type"', 'It is one of "circle", "square".'),
        ({"shape": {"type": "circle"}}, 'it.shape lacks the key "radius"', "It is a number."),
        (
            {"shape": {"type": "Round"}},
            'it.shape.type must be one of "circle", "square", not "Round"',
            'Did you mean "circle"?',
        ),
        ({"shape": {"type": 3}}, 'it.shape.type must be one of "circle", "square", not 3', ""),
        ({"words": 3}, "it.words must be text or a list, each text, not 3", "Put it in quotes."),
        ({"by_name": {"x": None}}, "it.by_name.x must be text, not nothing", ""),
        ({"words": []}, "it.words must be text or a list, each text, not an empty list", ""),
        ({"words": ["a", "b", "c"]}, "it.words must be text or a list, each text, not a list", ""),
        ({"limit": -1}, "it.limit must be true or false or a number, 0 or more, not -1", "Write false for none."),
        ({"color": "red", "hue": "blue"}, "hue is another name of color, and both are written", "Keep color."),
        ({"tint": "red", "hue": "blue"}, "hue is another name of tint, and both are written", "Keep tint."),
    ],
)
def test_what_fits_no_member_of_a_union_is_reported(tree: dict[str, object], message: str, hint: str) -> None:
    _, problems = read(tree, Drawing, nowhere, ("it",))
    assert [(problem.message, problem.hint) for problem in problems] == [(message, hint)]


class Patch(msgspec.Struct, kw_only=True):
    title: Annotated[str, msgspec.Meta(min_length=1)] | msgspec.UnsetType = msgspec.UNSET
    parent: str | msgspec.UnsetType | None = msgspec.UNSET


def test_a_reader_may_keep_null_apart_from_a_missing_key() -> None:
    reader = Notes()
    assert reader.read({"parent": None}, Patch) == Patch()
    reader.keeps_null = True
    assert reader.read({"parent": None}, Patch) == Patch(parent=None)
    assert reader.seen == []
    reader.read({"title": None}, Patch)
    reader.read({"title": ""}, Patch)
    assert [message for _, message, _ in reader.seen] == [
        "title must be text, not nothing",
        "title must be text, not empty text",
    ]


def test_a_json_value_is_read_or_refused_with_all_that_does_not_fit() -> None:
    wanted = {"subject": "the body", "hint": "Send a title.", "status": 422}
    assert read_value({"title": "a"}, Patch, **wanted) == Patch(title="a")
    assert read_value(None, Patch | None, **wanted) is None
    with pytest.raises(Fault) as caught:
        read_value({"titel": "a", "parent": 3}, Patch, **wanted)
    assert caught.value.message == 'the body has no key "titel"; parent must be text, not 3'
    assert (caught.value.hint, caught.value.status) == ('Did you mean "title"? Send a title.', 422)
    with pytest.raises(Fault, match="the body must be an object, not a list"):
        read_value([1], Patch, **wanted)


def test_keys_have_hints_and_authors_have_keys_of_their_own() -> None:
    reader = Notes()
    assert reader.read({"colour": "red", "x-mine": 1}, Strict, ("it",)) is None
    assert reader.seen == [
        (("it", "colour"), 'it has no key "colour"', "Write color."),
        (("it",), 'it lacks the key "color"', "Write color: red."),
    ]


def test_lists_and_tables_of_anything_are_called_so() -> None:
    assert describe_type(type_of(tuple[Json, ...])) == "a list"
    assert describe_type(type_of(dict[str, Json]), "an object") == "an object"
    assert describe_type(type_of(Annotated[str, key(hint="x")])) == "text"


def test_the_names_of_a_struct_are_its_keys_and_their_aliases() -> None:
    assert dict(names_of(Strict)) == {"color": "color"}
    names = names_of(Drawing)
    assert (names["tint"], names["hue"]) == ("color", "color")
    assert not {"others", "source"} & names.keys()
