import pytest

from sightline.evals.core.reading.files import read_variables


def test_only_what_is_wanted_is_kept() -> None:
    assert read_variables(b"A=1\nSECRET=x\nB=2\n", {"A", "B", "C"}) == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=plain", "plain"),
        ("  export A = spaced out  ", "spaced out"),
        ("A=value # a remark", "value"),
        ("A=with#sign", "with#sign"),
        ("A=# nothing", ""),
        ("A=", ""),
        ("A='as $it is # here\\n'", "as $it is # here\\n"),
        ('A="two\\nlines \\"quoted\\" \\\\ \\x"', 'two\nlines "quoted" \\ x'),
        ('A="open', '"open'),
    ],
)
def test_a_value_is_read_as_shells_write_it(line: str, value: str) -> None:
    assert read_variables(line.encode(), {"A"}) == {"A": value}


def test_what_is_no_variable_is_passed_over_and_the_last_of_two_counts() -> None:
    text = "\ufeffA=first\r\n# A=remark\nnot a line\n1A=x\nA=last\n".encode()
    assert read_variables(text, {"A", "1A"}) == {"A": "last"}
    assert read_variables(b"\xff\nA=1", {"A"}) == {"A": "1"}
