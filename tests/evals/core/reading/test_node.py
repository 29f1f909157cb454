from sightline.evals.core.reading.document import Node, node_of
from sightline.evals.core.suite import SuitePlace

HERE = SuitePlace("a.yaml", 3, 5)


def test_a_value_from_elsewhere_stands_where_it_is_put() -> None:
    node = node_of({"a": [1, None, "x"], "b": {}}, HERE, ("tests", 0))
    assert node.json == {"a": [1, None, "x"], "b": {}}
    assert node.members["a"].items[2].shown_path == "tests[0].a[2]"
    assert node.members["a"].items[2].place == HERE
    assert node.key_place("a") == HERE


def test_a_node_says_what_it_is() -> None:
    kinds = [Node(value, HERE).kind for value in (None, True, 1, 1.5, "x", [], {})]
    assert kinds == ["nothing", "true or false", "a number", "a number", "text", "a list", "a mapping"]


def test_what_is_not_there_and_what_is_null_are_the_same_to_a_reader() -> None:
    node = node_of({"a": None, "b": 1}, HERE, ())
    assert node.get("a") is None
    assert node.get("c") is None
    assert node.get("b") is not None
    assert node_of("text", HERE, ()).get("a") is None


def test_only_text_is_text_and_only_lists_have_items() -> None:
    assert Node("x", HERE).text == "x"
    assert Node(1, HERE).text is None
    assert Node("x", HERE).items == []
    assert Node([], HERE).members == {}


def test_a_key_without_a_place_stands_with_its_mapping() -> None:
    assert Node({}, HERE).key_place("x") == HERE
