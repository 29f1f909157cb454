from sightline.server.asgi import Answer
from sightline.server.workbench.page import nothing, page
from sightline.store.summary import Summary


def shown(*exchanges: Summary) -> str:
    return page("http://127.0.0.1:7700", "1.2.3", exchanges).body.decode()


def test_the_page_says_what_runs_and_how_to_point_a_client_at_it() -> None:
    html = shown()
    assert "1.2.3" in html
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:7700" in html
    assert "OPENAI_BASE_URL=http://127.0.0.1:7700/v1" in html
    assert "Nothing has passed through yet." in html


def test_what_others_said_stands_there_as_text() -> None:
    evil = "<script>alert('x')</script>\" onload=\"x"
    html = shown(
        Summary(id=evil, at=0.0, model=evil, title=evil, session=evil, provider=evil, fault=evil, dialect=evil),
        Summary(id="x_2", at=1e9, model="", state="failed", status=502, elapsed=1.5, title="\ud800"),
    )
    assert "<script" not in html
    assert 'onload="' not in html
    assert "&lt;script&gt;" in html
    assert "failed 502, 1.50 s" in html
    assert "2001-09-09 01:46:40 UTC" in html


def test_tokens_are_shown_where_they_are_known() -> None:
    assert "1,200 in, 0 out" in shown(Summary(id="x_1", at=0.0, input_tokens=1200))


def policy(answer: Answer) -> str:
    return dict(answer.headers)[b"content-security-policy"].decode()


def test_no_script_can_run() -> None:
    for answer in (page("a", "b", ()), nothing()):
        assert "unsafe-inline" not in policy(answer)
        assert policy(answer).startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy(answer)
        headers = dict(answer.headers)
        assert headers[b"x-frame-options"] == b"DENY"
        assert headers[b"x-content-type-options"] == b"nosniff"
        assert headers[b"referrer-policy"] == b"no-referrer"


def test_strangers_see_nothing() -> None:
    answer = nothing()
    assert answer.status == 401
    assert b"BASE_URL" not in answer.body
    assert b"set-cookie" not in dict(answer.headers)
