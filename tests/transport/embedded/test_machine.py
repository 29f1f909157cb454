import os
from pathlib import Path

import pytest

from sightline.transport.embedded.machine import cores, default_threads, has_avx2, has_build, openmp_problem


@pytest.mark.parametrize(
    ("platform", "soabi", "there_is_one"),
    [
        ("linux-x86_64", "cpython-311-x86_64-linux-gnu", True),
        ("linux-aarch64", "cpython-313-aarch64-linux-gnu", True),
        ("linux-x86_64", "cpython-312-x86_64-linux-musl", False),
        ("linux-armv7l", "cpython-311-arm-linux-gnueabihf", False),
        ("macosx-13.0-arm64", "cpython-311-darwin", True),
        ("win-amd64", "None", True),
        ("win-arm64", "None", False),
        ("win32", "None", False),
    ],
)
def test_which_platforms_have_a_build(platform: str, soabi: str, there_is_one: bool) -> None:
    assert has_build(platform, soabi) is there_is_one


@pytest.mark.parametrize(("available", "used"), [(1, 1), (2, 1), (3, 1), (8, 4)])
def test_half_of_the_cores_compute(available: int, used: int) -> None:
    assert default_threads(available) == used


def test_only_the_cores_that_this_process_may_use_count() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_the_number_of_cores_is_enough_where_nobody_can_be_kept_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


@pytest.mark.parametrize(
    ("cpuinfo", "has_it"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx avx2 bmi2\n", True),
        ("processor\t: 0\nflags\t\t: fpu avx\n", False),
        ("processor\t: 0\n", None),
    ],
)
def test_the_processor_says_whether_it_has_avx2(tmp_path: Path, cpuinfo: str, has_it: bool | None) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(cpuinfo)
    assert has_avx2("linux-x86_64", file) is has_it


def test_where_no_processor_says_anything_nothing_is_known(tmp_path: Path) -> None:
    assert has_avx2("win-amd64", tmp_path / "none") is None


def test_other_processors_need_no_avx2(tmp_path: Path) -> None:
    assert has_avx2("linux-aarch64", tmp_path / "none") is True


def test_a_missing_library_is_named() -> None:
    assert "libnobody.so.7" in openmp_problem("linux-x86_64", "libnobody.so.7")


def test_a_library_that_loads_is_no_problem() -> None:
    assert openmp_problem("linux-x86_64", None) == ""  # type: ignore[arg-type]  # the program itself


def test_elsewhere_the_engine_brings_its_own() -> None:
    assert openmp_problem("macosx-13.0-arm64", "libnobody.so.7") == ""
