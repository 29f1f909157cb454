from sightline.evals.core.reading.document import SuiteFindings, node_of
from sightline.evals.core.reading.sources import with_environment, with_variables
from sightline.evals.core.suite import SuitePlace
from sightline.model.json import Json

HERE = SuitePlace("a.yaml", 1, 1)


def filled(value: Json, variables: dict[str, Json], *path: str) -> tuple[Json, list[str]]:
    findings = SuiteFindings()
    node = with_variables(node_of(value, HERE, path), variables, findings)
    return node.json, [f"{each.severity}: {each.message}" for each in findings.problems]


def from_environment(value: Json, **environment: str) -> tuple[Json, list[str]]:
    findings = SuiteFindings()
    node = with_environment(node_of(value, HERE, ()), environment, findings)
    return node.json, [each.message for each in findings.problems]


def test_variables_fill_texts_wherever_they_stand() -> None:
    value = {"a": ["Hello {{ name }}, {{name}}", 3], "b": {"c": "{{ user.first }}"}, "d": "plain"}
    variables: dict[str, Json] = {"name": "Ada", "user": {"first": "A"}}
    assert filled(value, variables) == ({"a": ["Hello Ada, Ada", 3], "b": {"c": "A"}, "d": "plain"}, [])


def test_a_text_that_is_one_variable_becomes_its_value() -> None:
    assert filled(" {{ rows }} ", {"rows": [1, {"x": 2}]}) == ([1, {"x": 2}], [])
    assert filled("rows: {{ rows }}", {"rows": [1]}) == ("rows: [1]", [])


def test_without_variables_nothing_is_one() -> None:
    assert filled("{{ name }}", {}) == ("{{ name }}", [])


def test_a_variable_that_is_not_there_stays_and_is_told() -> None:
    text, problems = filled("{{ nmae }} {{ name.deep }}", {"name": "Ada"})
    assert text == "{{ nmae }} {{ name.deep }}"
    assert problems == [
        'warning: vars has no "nmae": it stays as it stands',
        'warning: vars has no "name.deep": it stays as it stands',
    ]


def test_names_of_a_graders_own_prompt_are_left_to_it() -> None:
    variables: dict[str, Json] = {"output": "no", "x": 1}
    assert filled("{{ output }} {{ x }}", variables, "turns", "assertions") == ("{{ output }} 1", [])
    assert filled("{{ output }} {{ x }}", variables, "input") == ("no 1", [])


def test_what_comes_from_a_variable_is_not_read_again() -> None:
    assert filled("{{ a }}!", {"a": "{{ b }}", "b": "x"}) == ("{{ b }}!", [])


def test_the_environment_is_not_taken_for_a_variable() -> None:
    assert filled("${{ HOME }} {{ a }}", {"a": "x", "HOME": "wrong"}) == ("${{ HOME }} x", [])


def test_the_environment_fills_texts_and_types_whole_ones() -> None:
    value = ["to ${{ WHO }}", "${{ COUNT }}", "${{ RATE }}", "${{ FLAG }}", "${{ OFF }}", "${{ HEX }}", 1, None]
    environment = {"WHO": "Ada", "COUNT": "12", "RATE": "-0.5", "FLAG": "true", "OFF": "false", "HEX": "0x10"}
    assert from_environment(value, **environment) == (["to Ada", 12, -0.5, True, False, "0x10", 1, None], [])


def test_what_the_environment_lacks_is_an_error_and_never_an_empty_text() -> None:
    value, problems = from_environment({"a": "${{ MISSING }} and ${{ WHO }}"}, WHO="Ada")
    assert value == {"a": "${{ MISSING }} and ${{ WHO }}"}
    assert problems == ["the environment has no MISSING"]
