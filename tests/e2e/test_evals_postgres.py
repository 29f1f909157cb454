"""Runs of suites with their record in PostgreSQL: several processes share it, and the page beside them."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.evals.eval_folder import eval_folder
from tests.eval_stage import KNOWN, knows
from tests.gateway_server import served
from tests.postgres_server import PASSWORD, database
from tests.server_process import PROGRAM
from tests.upstream import Upstream

SUITE = "capitals.eval.yaml"


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with eval_folder(tmp_path, monkeypatch) as upstream:
        yield upstream


@pytest.fixture
def url() -> Iterator[str]:
    with database() as url:
        yield url


def started(url: str, *words: str) -> "subprocess.Popen[bytes]":
    command = [*PROGRAM, "eval", *words, "--store", url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process: "subprocess.Popen[bytes]") -> tuple[int, str]:
    out, err = process.communicate(timeout=120)
    assert err == b""
    return process.returncode, out.decode()


def test_two_processes_run_one_suite_at_once_and_a_third_reads_both(url: str, upstream: Upstream) -> None:
    both = [started(url, "run", SUITE, "--target", "acme/m", "--trials", "2", "--json") for _ in range(2)]
    told = [ended(each) for each in both]
    assert [code for code, _ in told] == [1, 1]
    runs = [json.loads(out)["run"] for _, out in told]
    assert len(set(runs)) == 2
    _, listed = ended(started(url, "show", "--json"))
    assert {row["run"]: (row["state"], row["done"]) for row in map(json.loads, listed.splitlines())} == dict.fromkeys(
        runs, ("ended", 6)
    )
    code, compared = ended(started(url, "compare", *runs, "--json"))
    assert (code, {pair["outcome"] for pair in json.loads(compared)["pairs"]}) == (0, {"tie"})
    asked = len(upstream.seen)
    assert asked <= 12
    code, again = ended(started(url, "run", SUITE, "--target", "acme/m", "--trials", "2", "--json"))
    assert (json.loads(again)["targets"][0]["cached"], len(upstream.seen)) == (6, asked)


def test_the_page_sees_the_runs_of_others_and_runs_what_failed_again(
    url: str, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, report = ended(started(url, "run", SUITE, "--target", "acme/m", "--json"))
    run = json.loads(report)["run"]
    config, parts = (tmp_path / "sightline.toml").read_text(), urlsplit(url)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    shared = parts._replace(netloc=f"{parts.username}@{parts.hostname}:{parts.port}").geturl()
    with served(tmp_path, f'{config}[store]\nurl = "{shared}"\n[evals]\nfolder = "."\n') as page:
        (shown,) = page.api("/api/evals")
        assert (shown["run"], shown["state"], shown["done"]) == (run, "ended", 3)
        upstream.script = [knows(upstream, KNOWN | {"Spain": "Madrid"})]
        assert page.post(f"/api/evals/{run}/rerun")[0] == 200
        while page.api(f"/api/evals/{run}")["state"] != "ended":
            pass
        (summary,) = page.api(f"/api/evals/{run}")["summary"]
        assert summary["pass_rate"] == 1.0
    code, again = ended(started(url, "show", run, "--json"))
    assert (code, json.loads(again)["passed"], len(upstream.seen)) == (0, True, 4)
