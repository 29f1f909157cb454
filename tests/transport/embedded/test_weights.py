from pathlib import Path

import pytest

from sightline.transport.embedded import weights
from sightline.transport.embedded.weights import SHA256, are_weights, find_weights, sha256_of
from tests.local_model import needs_model


@needs_model
def test_the_installed_weights_are_the_published_ones() -> None:
    path = find_weights()
    assert path is not None
    assert are_weights(path)
    assert sha256_of(path) == SHA256


def test_a_given_file_comes_before_the_installed_one(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF and so on")
    assert find_weights(str(file)) == file
    assert are_weights(file)


def test_a_given_file_that_is_not_there_is_not_replaced_by_another(tmp_path: Path) -> None:
    assert find_weights(str(tmp_path / "gone.gguf")) is None


def test_a_file_of_something_else_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "page.gguf"
    file.write_bytes(b"<html>")
    assert not are_weights(file)


def test_nothing_is_found_where_the_package_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "PACKAGE", "a-package-that-nobody-wrote")
    assert find_weights() is None


def test_nothing_is_found_in_a_package_without_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "PACKAGE", "pytest")
    assert find_weights() is None
