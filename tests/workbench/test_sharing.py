"""Share and import over the API: every format, what is replaced, and what is refused."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.desk_stage import DeskStage, desk_stage
from tests.http_call import call

MAIL = "anna.b@acme.org"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskStage]:
    folder = tmp_path_factory.mktemp("shared")
    (folder / "plugins").mkdir()
    shutil.copy(Path("examples/plugins/url_list.py"), folder / "plugins")
    with desk_stage(folder, config='[plugins]\nuse = ["url_list.py"]\n') as stage:
        stage.person.put("/api/interception", {"mode": "off"})
        result = {"role": "tool", "tool_call_id": "t1", "content": "yes"}
        call = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages = [
            {"role": "system", "content": "The rules of the house, which nobody else may read."},
            {"role": "user", "content": f"Plain words, yes, to {MAIL}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            result,
        ]
        tool = {"type": "function", "function": {"name": "look", "description": "Looks into the safe of the house"}}
        stage.ask({"model": "m", "messages": messages, "tools": [tool]}, session="one").result(30)
        yield stage


def share(stage: DeskStage, **order: Any) -> tuple[bytes, dict[str, str]]:
    wanted = {"filter": "session:one", **order}
    answer = call("POST", f"{stage.server.url}/api/share", wanted, token=stage.server.token)
    assert answer.status == 200, answer
    return answer.body, answer.headers


FILES = [
    ("html", b"<!doctype html>", "html"),
    ("markdown", b"# Plain words", "md"),
    ("har", b"{", "har"),
    ("curl", b"curl", "sh"),
    ("python", b"import", "py"),
    ("jsonl", b'{"sightline":"record"', "jsonl"),
    ("url-list", b"# url-list 1", "url-list"),
]


def test_every_format_is_offered(stage: DeskStage) -> None:
    offered = stage.person.get("/api/about")["formats"]
    assert {(each["name"], each["suffix"]) for each in offered} == {(name, suffix) for name, _, suffix in FILES}
    assert [each["name"] for each in offered if not each["is_built_in"]] == ["url-list"]


@pytest.mark.parametrize(("form", "beginning", "suffix"), FILES)
def test_each_format_is_a_file_to_save_without_what_was_found(
    stage: DeskStage, form: str, beginning: bytes, suffix: str
) -> None:
    data, headers = share(stage, **{"as": form})
    assert data.lstrip()[: len(beginning)].lower() == beginning.lower()
    assert headers["content-disposition"].startswith("attachment; filename=")
    assert headers["content-disposition"].endswith(f'.{suffix}"')
    assert MAIL.encode() not in data
    if form != "jsonl":  # its bodies are in base64
        assert b"person-1@example.com" in data


def test_sections_are_left_out_and_a_short_one_only_where_it_is_a_whole_text(stage: DeskStage) -> None:
    data, _ = share(stage, **{"as": "markdown", "sections": ["system", "results", "tools"]})
    text = data.decode()
    assert "rules of the house" not in text
    assert "[system 1 left out]" in text
    assert "Plain words, yes, to" in text
    assert "\nyes\n" not in text
    har, _ = share(stage, **{"as": "har", "sections": ["tools", "user"]})
    assert b"safe of the house" not in har
    assert b"Plain words" not in har


def test_a_preview_lists_the_sections_and_one_of_them_is_left_out(stage: DeskStage) -> None:
    preview, _ = share(stage, preview=True)
    shown = {each["label"]: each for each in json.loads(preview)["sections"]}
    assert set(shown) >= {"look", f"Plain words, yes, to {MAIL}."}
    one = shown["The rules of the house, which nobody else may read."]
    assert (one["kind"], one["characters"], one["places"]) == ("system", 51, 1)
    exchange = stage.person.get("/api/exchanges?filter=session:one")["exchanges"][0]["id"]
    data, _ = share(stage, **{"filter": "", "exchanges": [exchange], "as": "markdown", "sections": [one["id"]]})
    assert b"rules of the house" not in data
    assert b"Plain words" in data


def test_what_is_kept_stays_and_nothing_is_replaced_where_that_is_not_wanted(stage: DeskStage) -> None:
    kept, _ = share(stage, **{"as": "markdown", "keep": [MAIL]})
    plain, _ = share(stage, **{"as": "markdown", "redact": False})
    assert MAIL.encode() in kept
    assert MAIL.encode() in plain
    preview, _ = share(stage, preview=True, patterns=["Pl(ai)n"])
    found = json.loads(preview)
    assert found["exchanges"] == 1
    assert {"kind": "own pattern", "value": "ai", "stand_in": "redacted-1"}.items() <= found["found"][0].items()


def test_wrong_orders_and_files_are_refused_and_change_nothing(stage: DeskStage) -> None:
    for order, status in (
        ({"filter": "session:one", "patterns": ["("]}, 422),
        ({"filter": "session:nowhere"}, 404),
        ({"filter": "colour:red"}, 400),
        ({"filter": "", "as": "pdf"}, 400),
        ({"filter": "session:one", "exchanges": ["x_1"]}, 400),
        ({"filter": "session:one", "sections": ["colours"]}, 422),
        ({"filter": "session:one", "sections": ["section-0123456789ab"]}, 422),
    ):
        assert stage.person.ask("POST", "/api/share", order)[0] == status
    before = len(stage.person.get("/api/exchanges")["exchanges"])
    assert stage.person.ask("POST", "/api/import", {"no": "archive"})[0] == 422
    assert len(stage.person.get("/api/exchanges")["exchanges"]) == before


def test_an_archive_a_har_and_a_file_of_a_plug_in_come_back(stage: DeskStage, tmp_path: Path) -> None:
    files = {form: share(stage, **{"as": form})[0] for form in ("jsonl", "har", "url-list")}
    (tmp_path / "plugins").mkdir()
    shutil.copy(Path("examples/plugins/url_list.py"), tmp_path / "plugins")
    with desk_stage(tmp_path, config='[plugins]\nuse = ["url_list.py"]\n') as other:

        def bring(data: bytes) -> Any:
            answer = call("POST", f"{other.server.url}/api/import", data, token=other.server.token)
            assert answer.status == 200, answer
            return answer.json()

        assert bring(files["jsonl"]) == {"exchanges": 1, "known": 0, "others": 0}
        assert bring(files["jsonl"]) == {"exchanges": 0, "known": 1, "others": 0}
        assert bring(files["har"])["others"] == 0
        assert bring(files["url-list"])["others"] == 0
        assert "person-1@example.com" in other.person.get("/api/exchanges")["exchanges"][0]["title"]
