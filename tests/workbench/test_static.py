from pathlib import Path

import pytest

from sightline.workbench.workbench import FOLDER, POLICY, Static


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ui"
    (made / "views").mkdir(parents=True)
    (made / "index.html").write_text('<script type="module" src="{ui}/app.js"></script>')
    (made / "app.js").write_text("export {};")
    (made / "views" / "list.css").write_text("a {}")
    (made / "api.d.ts").write_text("export {};")
    (tmp_path / "secret.js").write_text("no")
    return made


def address(static: Static) -> str:
    """Where the files are, as the page names it."""
    page = static.page().body.decode()
    return page.partition('src="')[2].partition("/app.js")[0]


def test_the_page_names_its_files_by_what_is_in_them(folder: Path) -> None:
    static = Static(folder)
    before = address(static)
    assert before.startswith("/ui/")
    assert address(static) == before == address(Static(folder))
    (folder / "app.js").write_text("export const changed = 1;")
    assert address(static) != before


def test_files_are_kept_for_good_and_the_page_is_not(folder: Path) -> None:
    static = Static(folder)
    file = static.file(f"{address(static)}/app.js".encode())
    assert (file.status, file.body) == (200, b"export {};")
    told = dict(file.headers)
    assert told[b"content-type"] == b"text/javascript; charset=utf-8"
    assert b"immutable" in told[b"cache-control"]
    assert told[b"x-content-type-options"] == b"nosniff"
    assert dict(static.page().headers)[b"cache-control"] == b"no-store"
    assert dict(static.file(f"{address(static)}/views/list.css".encode()).headers)[b"content-type"].startswith(
        b"text/css"
    )


@pytest.mark.parametrize(
    "name",
    [
        "", "/", "/nothing.js", "/index.html", "/api.d.ts", "/../secret.js", "/views/../app.js", "//app.js", "/app.js/",
        "/%61pp.js", "/..%2fsecret.js", "/views", "/app.js\0", "/\xff.js",
    ],
)  # fmt: skip
def test_nothing_else_is_given_out(folder: Path, name: str) -> None:
    static = Static(folder)
    answer = static.file((address(static) + name).encode("latin-1"))
    assert answer.status == 404
    assert dict(answer.headers)[b"cache-control"] == b"no-store"


def test_an_address_of_yesterday_is_refused_rather_than_answered_with_todays_file(folder: Path) -> None:
    static = Static(folder)
    assert static.file(b"/ui/0123456789abcdef/app.js").status == 404
    assert static.file(b"/ui/app.js").status == 404


def test_a_link_that_leads_out_of_the_folder_is_as_good_as_the_folders_owner_made_it(folder: Path) -> None:
    (folder / "linked.js").symlink_to(folder.parent / "secret.js")
    static = Static(folder)
    assert static.file(f"{address(static)}/linked.js".encode()).body == b"no"


def test_no_script_and_no_style_may_stand_in_the_page() -> None:
    static = Static()
    for answer in (static.page(), static.nothing()):
        assert dict(answer.headers)[b"content-security-policy"] == POLICY
    assert b"unsafe" not in POLICY
    assert static.nothing().status == 401
    assert b"/ui/" not in static.nothing().body


def test_all_that_the_page_asks_for_is_there() -> None:
    static = Static()
    html = static.page().body.decode()
    named = [part.partition('"')[0] for attribute in ('src="', 'href="') for part in html.split(attribute)[1:]]
    assert len(named) >= 8
    assert all(static.file(path.encode()).status == 200 for path in named)
    assert (FOLDER / "vendor" / "codemirror.js").exists()
