import re
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.problem import ConfigLocation, ConfigProblem, Path, fault_of
from sightline.catalog.toml import TomlDocument, TomlText, lines_of, own_names, parse_toml
from sightline.errors import Code, Fault


def numbered(text: str) -> TomlText:
    return TomlText("sightline.toml", text)


def read_toml(source: TomlText) -> TomlDocument:
    document = parse_toml(source)
    if isinstance(document, ConfigProblem):
        raise fault_of([document])
    return document


def refusal(text: str) -> Fault:
    with pytest.raises(Fault) as caught:
        read_toml(numbered(text))
    assert caught.value.code is Code.CONFIG
    return caught.value


# --- lines ----------------------------------------------------------------------------------------


def test_each_key_knows_its_line() -> None:
    text = """
# a comment with [brackets] and "quotes
[server]
port = 7700 # another

[providers."acme/x"]
base_url = "http://127.0.0.1"
'quoted key' = 1979-05-27 07:32:00
quirks.store = true
"""
    assert lines_of(text) == {
        ("server",): 3,
        ("server", "port"): 4,
        ("providers",): 6,
        ("providers", "acme/x"): 6,
        ("providers", "acme/x", "base_url"): 7,
        ("providers", "acme/x", "quoted key"): 8,
        ("providers", "acme/x", "quirks"): 9,
        ("providers", "acme/x", "quirks", "store"): 9,
    }


def test_values_over_several_lines_do_not_shift_what_follows() -> None:
    text = '''list = [
  1, # one ]
  [2, 3],
  { a = "}", b.c = [
     4 ] },
]
basic = """
# no comment
[no table]
\\"""" # the fourth quote is text
literal = \'\'\'
key = 1
it''s\'\'\'\'
empty = []
none = {}
last = ''
'''
    lines = lines_of(text)
    assert lines["list",] == 1
    assert [lines["list", index] for index in range(3)] == [2, 3, 4]
    assert lines["list", 1, 1] == 3
    assert lines["list", 2, "b", "c", 0] == 5
    assert [lines[name,] for name in ("basic", "literal", "empty", "none", "last")] == [7, 11, 14, 15, 16]
    assert ("key",) not in lines


def test_an_array_of_tables_counts_its_elements() -> None:
    text = """[[routes]]
provider = "a"
[[routes]]
[routes.more]
x = 1
[[routes.inner]]
[[routes.inner]]
y = 2
"""
    lines = lines_of(text)
    assert lines["routes",] == 1
    assert lines["routes", 0, "provider"] == 2
    assert lines["routes", 1] == 3
    assert lines["routes", 1, "more", "x"] == 5
    assert lines["routes", 1, "inner", 1, "y"] == 8


def test_a_table_that_is_named_after_its_children_has_its_own_line() -> None:
    assert lines_of("[a.b]\n[a]\n") == {("a",): 2, ("a", "b"): 1}


def test_windows_line_ends_and_a_byte_order_mark_are_no_matter() -> None:
    document = read_toml(numbered("\ufeffa = 1\r\n\r\nb = 2\r\n"))
    assert document.tree == {"a": 1, "b": 2}
    assert document.lines == {("a",): 1, ("b",): 3}


def test_a_place_is_the_nearest_thing_that_has_a_line() -> None:
    document = read_toml(numbered("\n[a]\nb = [{ c = 1 }]\n"))
    assert document.place(("a", "b", 0, "c", "none")) == ConfigLocation("sightline.toml", 3)
    assert document.place(("a", "missing")) == ConfigLocation("sightline.toml", 2)
    assert document.place(("elsewhere",)) == ConfigLocation("sightline.toml", 1)


def test_what_was_moved_is_found_where_it_stood() -> None:
    source = TomlText("own.toml", "[old]\nkey = 1\n", builtin=True)
    document = TomlDocument(source, {}, {("new",): ("old",), ("new", "name"): ("old", "key")})
    assert document.builtin
    assert document.place(("new", "name")).line == 2
    assert document.place(("new",)).line == 1


# --- what is not TOML -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[server]\nport 7700\n", "sightline.toml:2: expected '=' after a key in a key/value pair"),
        ("[server]\nport = 1\n[prov", "sightline.toml:3: "),
        ("a = " + "9" * 5000, "sightline.toml:1: a number has more digits than can be read"),
        ("a = " + "[" * 5000, "sightline.toml:1: tables and lists are nested more than"),
        ("a." * 3000 + "a = 1", "sightline.toml:1: tables and lists are nested more than"),
        ("a = " + "[" * 40 + "]" * 40, "sightline.toml:1: tables and lists are nested more than"),
    ],
    ids=["syntax", "broken off", "digits", "a list without end", "dots", "a deep list"],
)
def test_what_is_not_toml_is_refused_with_file_and_line(text: str, message: str) -> None:
    fault = refusal(text)
    assert fault.message.startswith(message)
    assert fault.hint


@given(st.text(alphabet=st.sampled_from("ab.=[]{}\"'\\#, \n\r\t1-:Tu\ufeff\x00"), max_size=60) | st.text())
def test_whatever_the_text_only_a_fault_escapes(text: str) -> None:
    document = parse_toml(numbered(text))
    if isinstance(document, TomlDocument):
        assert set(paths_in(document.tree)) == set(document.lines)
    else:
        assert 1 <= document.line <= text.count("\n") + 1


def paths_in(tree: object, path: Path = ()) -> list[Path]:
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [found for key, value in pairs for found in ((*path, key), *paths_in(value, (*path, key)))]


# --- random documents whose lines are known -------------------------------------------------------


@dataclass
class Written:
    """A document while it is being written, with the line of each key."""

    text: str = ""
    lines: dict[Path, int] = field(default_factory=dict)

    def put(self, text: str) -> None:
        self.text += text

    def note(self, path: Path) -> None:
        self.lines[path] = self.text.count("\n") + 1


KEYS = st.text(alphabet="abcxyz_-0", min_size=1, max_size=4) | st.text(
    alphabet=st.characters(exclude_categories=("Cs", "Cc")), max_size=5
)
SCALARS = st.sampled_from(
    [
        "1",
        "-0.5e3",
        "true",
        "inf",
        "0xdead",
        "1979-05-27T07:32:00Z",
        "1979-05-27 07:32:00",
        '""',
        "''",
        '"#]\\"}"',
        '"""\n]\n"""',
        "'''\n}\n\n#'''",
        '"""a\\\n  b"""""',
        "'''''it'''",
        '"\\u00e9\\\\"',
        "'c:\\'",
    ]
)
SPACE = st.sampled_from(["", " ", "\t "])
GAP = st.sampled_from(["", " ", "\n", " # ]}\"'\n", "\n\n\t"])
LINE_END = st.sampled_from(["\n", "\n\n", " # comment = [\n", "\t#\n\n", " \n # [x]\n"])


def spelled(key: str, draw: st.DrawFn) -> str:
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", key)
    if bare and draw(st.booleans()):
        return key
    if "'" not in key and draw(st.booleans()):
        return f"'{key}'"
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write_value(out: Written, path: Path, draw: st.DrawFn, depth: int) -> None:
    kind = draw(st.sampled_from(["scalar", "list", "table"])) if depth else "scalar"
    if kind == "scalar":
        out.put(draw(SCALARS))
    elif kind == "list":
        out.put("[" + draw(GAP))
        for index in range(draw(st.integers(0, 3))):
            if index:
                out.put("," + draw(GAP))
            out.note((*path, index))
            write_value(out, (*path, index), draw, depth - 1)
            out.put(draw(GAP))
        out.put("]")
    else:
        out.put("{" + draw(SPACE))
        for index, key in enumerate(draw(st.lists(KEYS, max_size=3, unique=True))):
            if index:
                out.put("," + draw(SPACE))
            write_pair(out, path, [key], draw, depth - 1)
            out.put(draw(SPACE))
        out.put("}")


def write_pair(out: Written, table: Path, keys: list[str], draw: st.DrawFn, depth: int) -> None:
    for length in range(1, len(keys) + 1):
        out.note((*table, *keys[:length]))
    dot = draw(SPACE) + "." + draw(SPACE)
    out.put(dot.join(spelled(key, draw) for key in keys) + draw(SPACE) + "=" + draw(SPACE))
    write_value(out, (*table, *keys), draw, depth)


@st.composite
def documents(draw: st.DrawFn) -> Written:
    out = Written(draw(st.sampled_from(["", "\n", "# first\n\n"])))
    names = draw(st.lists(KEYS, min_size=1, max_size=5, unique=True))
    loose = draw(st.integers(0, len(names)))
    for name in names[:loose]:
        write_pair(out, (), [name, *draw(st.lists(KEYS, max_size=2))], draw, 3)
        out.put(draw(LINE_END))
    for name in names[loose:]:
        repeats = draw(st.integers(0, 2))
        for index in range(repeats or 1):
            out.put(draw(SPACE))
            path: Path = (name, index) if repeats else (name,)
            if index == 0:
                out.note((name,))
            out.note(path)
            opening, closing = ("[[", "]]") if repeats else ("[", "]")
            out.put(opening + draw(SPACE) + spelled(name, draw) + draw(SPACE) + closing + draw(LINE_END))
            for key in draw(st.lists(KEYS, max_size=3, unique=True)):
                write_pair(out, path, [key], draw, 2)
                out.put(draw(LINE_END))
    return out


@given(documents())
def test_the_lines_of_any_document_are_right(written: Written) -> None:
    document = read_toml(numbered(written.text))
    assert document.lines == written.lines


def renamed(text: str) -> tuple[TomlDocument, list[ConfigProblem]]:
    return own_names(read_toml(TomlText("sightline.toml", text)))


CODEX = """
[model_providers.acme]
name = "Acme"
base_url = "https://acme.example/v1"
env_key = "ACME_KEY"
env_key_instructions = "Ask Acme."
wire_api = "Responses"
query_params = { api-version = "v1" }
http_headers = { x-team = "blue" }
env_http_headers = { x-trace = "TRACE" }
request_max_retries = 3
[families.own]
family = "Own"
base_instructions = "Be brief."
"""


def test_a_table_that_was_written_for_codex_is_understood() -> None:
    document, problems = renamed(CODEX)
    assert not problems
    assert document.tree == {
        "providers": {
            "acme": {
                "title": "Acme",
                "base_url": "https://acme.example/v1",
                "key_env": "ACME_KEY",
                "key_help": "Ask Acme.",
                "dialect": "openai-responses",
                "query": {"api-version": "v1"},
                "headers": {"x-team": "blue"},
                "env_headers": {"x-trace": "TRACE"},
                "request_max_retries": 3,
            }
        },
        "families": {"own": {"title": "Own", "base_instructions": "Be brief."}},
    }


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("providers",), 2),
        (("providers", "acme"), 2),
        (("providers", "acme", "base_url"), 4),
        (("providers", "acme", "key_env"), 5),
        (("providers", "acme", "headers", "x-team"), 9),
        (("families", "own", "title"), 13),
    ],
)
def test_renamed_keys_keep_their_line_numbers(path: tuple[str, ...], line: int) -> None:
    document, _ = renamed(CODEX)
    assert document.place(path).line == line


@pytest.mark.parametrize(
    ("text", "providers", "problem"),
    [
        ('[providers.a]\nwire_api = "chat"\n', {"a": {"dialect": "openai-chat"}}, ""),
        ("[providers.a]\nwire_api = 3\n", {"a": {"dialect": 3}}, ""),
        (
            '[model_providers.a]\nwire_api = "respones"\n',
            {"a": {"dialect": "openai-chat"}},
            'sightline.toml:2: model_providers.a.wire_api must be one of "responses", "chat", not "respones"',
        ),
        (
            '[providers.a]\nkey_env = "A"\nenv_key = "B"\n',
            {"a": {"key_env": "A"}},
            'sightline.toml:3: providers.a has both "env_key" and "key_env"',
        ),
        (
            "[providers.a]\n[model_providers.a]\n[model_providers.b]\nenv_key = 'B'\n",
            {"a": {}, "b": {"key_env": "B"}},
            "sightline.toml:2: model_providers.a and providers.a are the same table",
        ),
    ],
)
def test_a_synonym_has_one_meaning(text: str, providers: object, problem: str) -> None:
    document, problems = renamed(text)
    assert document.tree == {"providers": providers}
    assert [each.text for each in problems] == ([problem] if problem else [])
    assert all(each.hint for each in problems)


@pytest.mark.parametrize(
    "text", ["providers = 1\n[model_providers.a]\n", "model_providers = 1\n", "[providers]\na = 1\n", "families = []\n"]
)
def test_what_is_no_table_is_left_to_the_reader(text: str) -> None:
    _, problems = renamed(text)
    assert not problems
