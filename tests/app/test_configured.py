from pathlib import Path

import pytest

from sightline.app.configuration import config_file, configuration, data_folder, load_with_problems
from sightline.errors import Code, Fault


def test_the_built_in_catalogue_is_sound() -> None:
    loaded = configuration(None)
    assert loaded.path is None
    assert loaded.problems == ()
    assert list(loaded.catalog.providers)[-1] == "local"


def test_a_provider_without_a_key_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    loaded = configuration(None)
    assert loaded.has_key(loaded.catalog.providers["ollama"])
    assert not loaded.has_key(loaded.catalog.providers["openai"])
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    assert not configuration(None).has_key(loaded.catalog.providers["openai"])
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert configuration(None).has_key(loaded.catalog.providers["openai"])


def test_the_environment_can_name_the_file_and_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_CONFIG", "mine.toml")
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "kept"))
    assert config_file(None) == Path("mine.toml")
    assert config_file("other.toml") == Path("other.toml")
    assert data_folder(None) == tmp_path / "kept"
    assert data_folder("here") == Path("here")
    monkeypatch.delenv("SIGHTLINE_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert data_folder(None) == tmp_path / "share" / "sightline"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder(None) == tmp_path / ".local" / "share" / "sightline"


def test_a_wrong_configuration_is_refused_or_looked_at(tmp_path: Path) -> None:
    (tmp_path / "sightline.toml").write_text("[nonsense]\n")
    with pytest.raises(Fault) as caught:
        configuration(None)
    assert caught.value.code is Code.CONFIG
    assert len(load_with_problems(None).problems) == 1


def test_a_home_that_is_not_ours_holds_nothing_for_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", refused)
    assert config_file(None) is None


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(Fault, match="no home folder") as caught:
        config_file(None)
    assert "XDG_CONFIG_HOME" in caught.value.hint
    with pytest.raises(Fault, match="no home folder"):
        data_folder(None)


def test_an_endless_file_is_no_configuration() -> None:
    with pytest.raises(Fault, match="too large for a configuration"):
        configuration("/dev/zero")


def test_the_embedded_models_window_is_what_was_set(tmp_path: Path) -> None:
    (tmp_path / "sightline.toml").write_text("[local]\ncontext_window = 2048\n")
    assert configuration(None).catalog.models["smollm2-135m-instruct"].context_window == 2048
