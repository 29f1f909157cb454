"""Places in files, as a person reads them."""

from sightline.evals.core.suite import SuitePlace


def test_a_place_is_file_line_and_column() -> None:
    assert str(SuitePlace("suite.yaml", 3, 7)) == "suite.yaml:3:7"


def test_a_place_without_a_line_is_the_file() -> None:
    assert str(SuitePlace("suite.yaml")) == "suite.yaml"
