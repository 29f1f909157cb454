import pytest

from sightline.cli import browser


def test_a_browser_is_opened_only_where_a_person_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(browser, "is_terminal", lambda _stream: False)
    browser.open_page("http://127.0.0.1/")
    assert opened == []
    monkeypatch.setattr(browser, "is_terminal", lambda _stream: True)
    monkeypatch.setattr("threading.Thread.start", lambda self: self.run())
    browser.open_page("http://127.0.0.1/")
    assert opened == ["http://127.0.0.1/"]
