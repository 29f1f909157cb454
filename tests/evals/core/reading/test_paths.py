import pytest

from sightline.evals.core.reading.files import candidates, display_path, folder_of, is_link, join_path, refusal_of


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "absolute"),
        ("~/x", "absolute"),
        ("C:/x", "absolute"),
        ("a\\b", "backslashes"),
        ("https://x/y", "URL"),
        (" ", "empty"),
        ("a\nb", "characters"),
    ],
)
def test_a_path_that_is_not_relative_is_refused(path: str, why: str) -> None:
    refusal = refusal_of(path)
    assert refusal is not None
    assert why in refusal[0]
    assert refusal[1]


def test_a_slash_in_front_is_the_top_of_the_repository_where_that_is_meant() -> None:
    assert refusal_of("/docs/a.md", from_top=True) is None
    assert refusal_of("~/a.md", from_top=True) is not None


def test_relative_paths_are_taken_and_shown_as_they_are_named() -> None:
    assert refusal_of("../shared/a b.md") is None
    assert display_path("./a//b.md") == "a/b.md"
    assert display_path("../b.md") == "../b.md"


def test_files_are_searched_beside_the_suite_and_in_each_folder_above() -> None:
    assert list(candidates("x/y/a.yaml", "f.md")) == ["x/y/f.md", "x/f.md", "f.md"]
    assert list(candidates("x/y/a.yaml", "../f.md")) == ["x/f.md", "f.md"]
    assert list(candidates("a.yaml", "../f.md")) == []


def test_no_path_leads_out_of_the_folder() -> None:
    assert join_path("a/b", "../../c") == "c"
    assert join_path("a/b", "../../../c") is None
    assert folder_of("c.md") == ""


def test_links_are_what_a_provider_can_fetch() -> None:
    assert is_link("https://x/y.png")
    assert is_link("data:image/png;base64,AA")
    assert not is_link("ftp://x")
