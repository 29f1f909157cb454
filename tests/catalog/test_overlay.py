from sightline.catalog.loading import Overlay
from sightline.catalog.problem import ConfigLocation
from sightline.catalog.toml import TomlText, read_toml


def laid(*texts: tuple[str, str]) -> Overlay:
    """Texts over each other; those of `own.toml` are built in."""
    overlay = Overlay()
    for file, text in texts:
        document = read_toml(TomlText(file, text, builtin=file == "own.toml"))
        overlay.lay(document.tree, document)
    return overlay


OWN = ("own.toml", '[p.a]\nurl = "x"\nlist = [1, 2]\nheaders = { one = "1" }\n')
USERS = ("users.toml", '\n[p.a]\nlist = [3]\nheaders = { two = "2" }\n')


def test_tables_are_merged_and_anything_else_is_replaced() -> None:
    overlay = laid(OWN, USERS)
    assert overlay.tree == {"p": {"a": {"url": "x", "list": [3], "headers": {"one": "1", "two": "2"}}}}


def test_each_value_knows_who_set_it() -> None:
    overlay = laid(OWN, USERS)
    assert overlay.place(("p", "a", "url")) == ConfigLocation("own.toml", 2)
    assert overlay.place(("p", "a", "list", 0)) == ConfigLocation("users.toml", 3)
    assert overlay.place(("p", "a", "missing")) == ConfigLocation("users.toml", 2)
    assert overlay.is_users(("p", "a", "headers", "two"))
    assert not overlay.is_users(("p", "a", "headers", "one"))
    assert not overlay.is_users(("p", "b"))


def test_a_document_is_not_changed_by_what_is_laid_over_it() -> None:
    first = read_toml(TomlText("own.toml", OWN[1], builtin=True))
    overlay = Overlay()
    overlay.lay(first.tree, first)
    second = read_toml(TomlText(*USERS))
    overlay.lay(second.tree, second)
    assert first.tree == read_toml(TomlText(*OWN)).tree


def test_a_table_over_something_else_and_back() -> None:
    assert laid(("own.toml", "a = 1"), ("users.toml", "[a]\nb = 2")).tree == {"a": {"b": 2}}
    assert laid(("own.toml", "[a]\nb = 2"), ("users.toml", "a = 1")).tree == {"a": 1}


def test_what_goes_below_the_users_values_goes_above_the_own_ones() -> None:
    overlay = laid(OWN, USERS)
    overlay.lay_below_the_users({"url": "y", "list": [9], "headers": {"one": "9", "two": "9"}, "new": 1}, "p", "a")
    assert overlay.tree["p"] == {
        "a": {"url": "y", "list": [3], "headers": {"one": "9", "two": "2"}, "new": 1},
    }
