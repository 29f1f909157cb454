from sightline.catalog.catalog import Catalog, Detection
from sightline.catalog.facts import Family, Model
from sightline.catalog.loading import KEYS, TABLES, WIRE_APIS
from tests.catalog.documented import PAGE, missing_rows


def test_an_empty_catalogue_knows_nothing() -> None:
    assert not any(getattr(Catalog(), name) for name in Catalog.__struct_fields__)


def test_a_name_goes_before_an_alias_and_the_first_before_others() -> None:
    models = {"a": Model(aliases=("B", "c")), "b": Model(), "B": Model()}
    assert Catalog(models=models).spelled == {"a": "a", "b": "b", "c": "a"}


def test_the_longest_glob_comes_first() -> None:
    one, two = Family(match=("gpt-*", "*")), Family(match=("GPT-5*",))
    assert [family for _, family in Catalog(families={"one": one, "two": two}).globs] == [two, one, one]


def test_every_table_has_its_section() -> None:
    headings = [line for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert not [name for name in Catalog.__struct_fields__ if not any(f"[{name}" in line for line in headings)]
    assert not missing_rows("`[detections.NAME]`", Detection)


def test_every_synonym_is_documented() -> None:
    section = PAGE.read_text().partition("\n## Names from Codex\n")[2]
    names = {*(synonym for keys in KEYS.values() for synonym in keys), *TABLES}
    assert not [name for name in names if name not in section]
    assert not [api for api in WIRE_APIS if f'`wire_api = "{api}"`' not in section]
