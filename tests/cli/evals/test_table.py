from sightline.cli.evals.report import table


def test_columns_stand_under_each_other() -> None:
    rows = [("NAME", "N", "WORDS"), ("a", "10", "x"), ("long", "2", "two\nlines \x1b")]
    assert table(rows, right=frozenset({1})) == [
        "NAME   N  WORDS",
        "a     10  x",
        "long   2  two lines \\x1b",
    ]
