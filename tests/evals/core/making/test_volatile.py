import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.making.case_writer import KINDS, Placeholders
from sightline.evals.core.reading.document import Node, SuiteFindings
from sightline.evals.core.reading.sources import with_environment, with_variables
from sightline.evals.core.suite import SuitePlace

HOME = "/ho" + "me/ada"
MAC = "/Us" + "ers/ada"


def filled(text: str, variables: dict[str, str]) -> str:
    """The text as a suite's reader fills it in."""
    findings = SuiteFindings()
    node = with_environment(Node(text, SuitePlace()), {}, findings)
    node = with_variables(node, dict(variables), findings)
    assert findings.problems == ()
    assert isinstance(node.value, str)
    return node.value


@pytest.mark.parametrize(
    ("text", "replaced", "variables"),
    [
        (
            "run 0f8fad5b-d9cb-469f-a165-70867728950e again",
            "run {{ uuid }} again",
            {"uuid": "0f8fad5b-d9cb-469f-a165-70867728950e"},
        ),
        ("at 2026-11-15T13:48:54.123Z.", "at {{ time }}.", {"time": "2026-11-15T13:48:54.123Z"}),
        ("Sun Nov 15 13:48:54 UTC 2026", "{{ time }}", {"time": "Sun Nov 15 13:48:54 UTC 2026"}),
        ("Today is 2026-11-15, a day.", "Today is {{ date }}, a day.", {"date": "2026-11-15"}),
        ("Today's date: Sunday, November 15, 2026", "Today's date: {{ date }}", {"date": "Sunday, November 15, 2026"}),
        ("on 15 November 2026 or 11/15/2026", "on {{ date }} or {{ date_2 }}",
         {"date": "15 November 2026", "date_2": "11/15/2026"}),
        ("sess_a1b2c3d4e5", "{{ session }}", {"session": "sess_a1b2c3d4e5"}),
        ("session_id=9f3kz81, go", "session_id={{ session }}, go", {"session": "9f3kz81"}),
        ("see toolu_01A09q90qw90lq917835lq9", "see {{ id }}", {"id": "toolu_01A09q90qw90lq917835lq9"}),
        ("cd /tmp/tmp8x_3k/out", "cd {{ temp_dir }}/out", {"temp_dir": "/tmp/tmp8x_3k"}),
        (r"C:\Users\ada\AppData\Local\Temp\x1\a", r"{{ temp_dir }}\a",
         {"temp_dir": r"C:\Users\ada\AppData\Local\Temp\x1"}),
        (f"open {HOME}/notes.md", "open {{ home }}/notes.md", {"home": HOME}),
        (f"'{MAC}'", "'{{ home }}'", {"home": MAC}),
        (r"C:\Users\ada\notes", r"{{ home }}\notes", {"home": r"C:\Users\ada"}),
        ("in /workspace/shop/src/a.py", "in {{ dir }}/src/a.py", {"dir": "/workspace/shop"}),
        ("in /srv/app.py", "in {{ dir }}/app.py", {"dir": "/srv"}),
    ],
)  # fmt: skip
def test_what_is_another_each_time_gets_a_name(text: str, replaced: str, variables: dict[str, str]) -> None:
    placeholders = Placeholders()
    assert placeholders.text(text) == replaced
    assert placeholders.variables == variables
    assert filled(replaced, variables) == text


@pytest.mark.parametrize(
    "text",
    [
        "gpt-4o-2024-08-06",
        "GET /v1/models and /usr/bin/env",
        "https://example.com/home/ada/x",
        "either/or, 1/2, 2026",
        "user_authentication and call_something_long",
        "version 1.2.3-4",
        "the work of /tmp",
        "2026-13-45",
    ],
)
def test_what_only_looks_so_stays(text: str) -> None:
    assert Placeholders().text(text) == text


def test_the_same_words_have_the_same_name_and_others_the_next() -> None:
    placeholders = Placeholders()
    assert placeholders.text("2026-01-02 2026-01-03 2026-01-02") == "{{ date }} {{ date_2 }} {{ date }}"
    assert placeholders.text("2026-01-03") == "{{ date_2 }}"
    assert placeholders.variables == {"date": "2026-01-02", "date_2": "2026-01-03"}


def test_only_the_kinds_that_are_wanted_are_replaced() -> None:
    placeholders = Placeholders(("uuid",))
    assert placeholders.text("2026-01-02 /tmp/x1/y") == "2026-01-02 /tmp/x1/y"
    assert set(KINDS) == {"uuid", "time", "date", "session", "id", "temp_dir", "home", "dir"}


@pytest.mark.parametrize("text", ["{{ name }}", "${{ NAME }}", "$${{NAME}}", "{{{{ x }}", "a {{x.y}} b", "{{ 1 }}"])
def test_braces_that_were_said_are_not_taken_for_references(text: str) -> None:
    placeholders = Placeholders()
    assert filled(placeholders.text(text), placeholders.variables) == text


def test_behind_a_dollar_sign_nothing_is_replaced() -> None:
    placeholders = Placeholders()
    assert placeholders.text("costs $2026-11-15") == "costs $2026-11-15"


@given(st.lists(st.sampled_from(["2026-11-15", "{{", "}}", "$", " x ", "/tmp/a1", "{", "\n", "é", "sess_1234567890"])))
def test_filling_in_gives_back_what_was_said(pieces: list[str]) -> None:
    text = "".join(pieces)
    placeholders = Placeholders()
    assert filled(placeholders.text(text), placeholders.variables) == text
