import gc
import importlib.util
import json
import os
import resource
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sightline.cli.evals import running
from sightline.cli.evals.report import FORMATS, Exports
from sightline.cli.program import main
from sightline.errors import Fault
from sightline.evals.core.run_state import CaseDone, EvalBegan
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.target import TargetSpec
from tests.cli.evals.test_report import standing
from tests.eval_stage import KNOWN, knows
from tests.evals.core.rows import failed, fold_facts, row
from tests.server_process import PROGRAM
from tests.upstream import Upstream


def test_eval_alone_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval"]) == 2
    assert "COMMAND" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["eval", "run", "--help"])
    assert "--rerun-failed RUN" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--cache", "--no-cache"], ["--resume", "a", "--dry-run"], ["--trials", "0"]])
def test_what_excludes_itself_is_refused(words: list[str]) -> None:
    assert main(["eval", "run", "s.yaml", *words]) == 2


def test_circular_garbage_is_looked_for_as_often_as_before_once_a_command_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    earlier = gc.get_threshold()  # a server that other tests ran in this process has set its own
    gc.set_threshold(700, 10, 10)
    before, meanwhile = gc.get_threshold(), list[int]()

    def run(_arguments: object) -> int:
        meanwhile.append(gc.get_threshold()[0])
        return 0

    monkeypatch.setattr("sightline.cli.evals.suites.validate", run)
    assert main(["eval", "validate", "s.yaml"]) == 0
    after = gc.get_threshold()
    gc.set_threshold(*earlier)
    assert meanwhile[0] > before[0]
    assert after == before


Captured = pytest.CaptureFixture[str]
SUITE = "capitals.eval.yaml"


def told(capsys: Captured) -> dict[str, object]:
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_a_suite_is_run_and_reported_and_the_exit_code_says_how_it_went(upstream: Upstream, capsys: Captured) -> None:
    assert main(["eval", "run", SUITE, "--target", "acme/m"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("capitals (capitals.eval.yaml): 3 cases on 1 target, 3 of 3 results, run e_")
    assert "acme/m" in out
    assert "FAILED (1)\n  spain on acme/m  score 0  capitals.eval.yaml:10:5\n" in out
    assert 'contains "Madrid"' in out
    assert err == ""
    assert len(upstream.seen) == 3
    assert upstream.seen[0].json()["messages"] == [{"role": "user", "content": "What is the capital of France?"}]


def test_several_targets_make_a_matrix(folder: Path, capsys: Captured) -> None:
    assert main(["eval", "run", SUITE, "--target", "all", "--target", "none", "--json"]) == 1
    report = told(capsys)
    assert [(each["target"], each["passed"]) for each in report["targets"]] == [("all", 3), ("none", 0)]
    assert (report["state"], report["passed"], report["of"]) == ("ended", False, 6)
    assert main(["eval", "run", SUITE, "--target", "all"]) == 0


def test_cases_are_chosen_and_run_several_times(folder: Path, capsys: Captured) -> None:
    words = ["eval", "run", SUITE, "--target", "all", "--case", "fr*", "--trials", "3", "--json"]
    assert main(words) == 0
    assert told(capsys)["results"] == 3
    assert main(["eval", "run", SUITE, "--target", "all", "--case", "rome"]) == 2
    assert "no case of capitals.eval.yaml is selected" in capsys.readouterr().err
    tagged = folder / "tagged.yaml"
    tagged.write_text(
        "tests: [{id: a, tags: [slow], criteria: x, input: hi, assertions: [{type: contains, value: a}]},"
        " {id: b, criteria: x, input: hi, assertions: [{type: contains, value: a}]}]"
    )
    assert main(["eval", "run", "tagged.yaml", "--target", "all", "--tag", "slow", "--json"]) == 0
    assert told(capsys)["results"] == 1
    assert main(["eval", "run", "tagged.yaml", "--target", "all", "--exclude-tag", "slow", "--json"]) == 0
    assert told(capsys)["results"] == 1


def test_results_are_written_for_other_programs(folder: Path, capsys: Captured) -> None:
    words = ["eval", "run", SUITE, "--target", "none", "--output", "out", "--jsonl", "a/r.jsonl", "--junit", "a/r.xml"]
    assert main([*words, "--threshold", "0"]) == 0
    assert sorted(each.name for each in (folder / "out").iterdir()) == [
        "index.jsonl",
        "junit.xml",
        "results.jsonl",
        "summary.json",
    ]
    lines = [json.loads(line) for line in (folder / "a/r.jsonl").read_text().splitlines()]
    assert [line["case"] for line in lines] == ["france", "italy", "spain"]
    assert len(ElementTree.parse(folder / "a/r.xml").getroot().findall(".//testcase")) == 3
    (folder / "file").write_text("")
    assert main(["eval", "run", SUITE, "--target", "none", "--jsonl", "file/r.jsonl"]) == 2


def test_run_can_be_resumed_and_failures_can_be_rerun(upstream: Upstream, capsys: Captured, folder: Path) -> None:
    main(["eval", "run", SUITE, "--target", "acme/m", "--no-cache", "--json"])
    run = str(told(capsys)["run"])
    upstream.script = [knows(upstream, KNOWN | {"Spain": "Madrid"})]
    assert main(["eval", "run", "--rerun-failed", run[:-2], "--jsonl", "r.jsonl", "--json"]) == 0
    assert (told(capsys)["passed"], len(upstream.seen)) == (True, 4)
    assert len((folder / "r.jsonl").read_text().splitlines()) == 3
    assert main(["eval", "run", "--resume", "last", "--json"]) == 0
    assert len(upstream.seen) == 4
    assert main(["eval", "run", "--resume", "e_9"]) == 2
    assert "there is no run 'e_9' of a suite" in capsys.readouterr().err
    (folder / SUITE).rename(folder / "other.yaml")
    assert main(["eval", "run", "--resume", run]) == 2
    assert "is not below" in capsys.readouterr().err


def test_rerun_of_a_changed_suite_uses_its_original_cases(folder: Path, capsys: Captured) -> None:
    main(["eval", "run", SUITE, "--target", "none", "--json"])
    (folder / SUITE).write_text((folder / SUITE).read_text().replace("Paris", "Lyon"))
    assert main(["eval", "run", "--rerun-failed", "last"]) == 1
    out, err = capsys.readouterr()
    assert 'contains "Paris"' in out
    assert err == f"note: {SUITE} has changed; the run continues with its cases as they were\n"


def test_run_stopped_by_the_budget_is_resumed_with_more_money(upstream: Upstream, capsys: Captured) -> None:
    words = ["eval", "run", SUITE, "--target", "m", "--budget-usd", "0.000001", "--workers", "1", "--no-cache"]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "It was stopped." in out
    assert "2 results left: sightline eval run --resume e_" in out
    assert main(["eval", "run", "--resume", "last", "--json"]) == 1
    assert told(capsys)["results"] == 1
    assert main(["eval", "run", "--resume", "last", "--budget-usd", "1", "--json"]) == 1
    assert (told(capsys)["state"], len(upstream.seen)) == ("ended", 3)


def test_a_judge_without_a_price_is_found_out_before_anything_is_paid(
    upstream: Upstream, folder: Path, capsys: Captured
) -> None:
    (folder / "judged.yaml").write_text(
        "tests: [{id: a, criteria: x, input: hi,"
        " assertions: [{type: llm-grader, target: acme/unknown, prompt: good?}]}]"
    )
    assert main(["eval", "run", "judged.yaml", "--target", "m", "--budget-usd", "1"]) == 2
    assert "the prices of unknown are not known" in capsys.readouterr().err
    assert not upstream.seen


def test_of_several_suites_not_all_must_have_the_cases_that_are_wanted(folder: Path, capsys: Captured) -> None:
    (folder / "other.yaml").write_text("tests: [{id: b, input: hi, assertions: [{type: contains, value: a}]}]")
    for names in ((SUITE, "other.yaml"), ("other.yaml", SUITE)):
        assert main(["eval", "run", *names, "--target", "all", "--case", "b", "--json"]) == 0
        assert told(capsys)["suite"] == "other.yaml"
        assert main(["eval", "run", *names, "--target", "all", "--case", "b", "--dry-run"]) == 0
        capsys.readouterr()
    assert main(["eval", "run", SUITE, "other.yaml", "--target", "all", "--case", "z"]) == 2
    assert "is selected" in capsys.readouterr().err


def test_no_suite_is_begun_where_another_cannot_be(upstream: Upstream, folder: Path, capsys: Captured) -> None:
    (folder / "other.yaml").write_text(
        "execution: {target: nobody}\ntests: [{id: b, input: hi, assertions: [{type: contains, value: a}]}]"
    )
    (folder / "one.yaml").write_text(
        "execution: {target: acme/m}\ntests: [{id: b, input: hi, assertions: [{type: contains, value: a}]}]"
    )
    assert main(["eval", "run", "one.yaml", "other.yaml"]) == 2
    assert "'nobody' is neither a target nor a model" in capsys.readouterr().err
    assert not upstream.seen


def test_results_of_a_suite_are_written_also_if_the_next_one_cannot_be_run(folder: Path, capsys: Captured) -> None:
    with (folder / "sightline.toml").open("a") as file:
        file.write('[evals.targets.down.cli]\ncommand = "echo Paris"\nhealthcheck_command = "exit 1"\n')
    (folder / "other.yaml").write_text(
        "execution: {target: down}\ntests: [{id: b, input: hi, assertions: [{type: contains, value: a}]}]"
    )
    (folder / "one.yaml").write_text(
        "execution: {target: all}\ntests: [{id: b, input: hi, assertions: [{type: contains, value: a}]}]"
    )
    assert main(["eval", "run", "one.yaml", "other.yaml", "--jsonl", "r.jsonl"]) == 2
    assert "its healthcheck ended with 1" in capsys.readouterr().err
    assert [json.loads(line)["suite"] for line in (folder / "r.jsonl").read_text().splitlines()] == ["one"]


def test_results_and_exit_code_survive_an_unwritable_stdout(folder: Path) -> None:
    words = [*PROGRAM, "eval", "run", SUITE, "--target", "none", "--jsonl", "r.jsonl"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        ended = subprocess.run(words, stdout=nobody, stderr=subprocess.PIPE, cwd=folder, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, b"")
    assert len((folder / "r.jsonl").read_text().splitlines()) == 3
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [*words[:-1], "again.jsonl"], stdout=full, stderr=subprocess.PIPE, cwd=folder, timeout=60
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"error[usage]: stdout: ")
    assert len((folder / "again.jsonl").read_text().splitlines()) == 3


def test_targets_of_agentv_answer_with_the_key_beside_them(upstream: Upstream, folder: Path, capsys: Captured) -> None:
    (folder / ".agentv").mkdir()
    (folder / ".agentv" / "targets.yaml").write_text(
        "targets:\n  - {name: default, provider: openai, model: m, api_key: '${{ MY_KEY }}', fallback_targets: [b],"
        f" base_url: '{upstream.url}/v1'}}\n"
    )
    (folder / ".env").write_text("MY_KEY=sk-from-the-file\n")
    assert main(["eval", "run", SUITE, "--no-cache", "--json"]) == 1
    assert upstream.seen[0].header("authorization") == "Bearer sk-from-the-file"
    out, err = capsys.readouterr()
    assert "fallback_targets of a target is not used" in err
    run = json.loads(out)["run"]
    assert main(["eval", "run", "--rerun-failed", run, "--json"]) == 1
    assert len(upstream.seen) == 4
    database = b"".join(each.read_bytes() for each in (folder / "data").rglob("*") if each.is_file())
    assert b"sk-from-the-file" not in database


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no suite is named"),
        ([SUITE, "--resume", "e_1"], "a run knows its suite"),
        (
            ["--resume", "e_1", "--case", "a", "--trials", "2"],
            "keeps what it was begun with, and so its --trials, --case",
        ),
        (["gone.yaml"], "there is no file gone.yaml"),
        ([SUITE, "--target", "nobody"], "'nobody' is neither a target nor a model"),
        ([SUITE, "--threshold", "2"], "'2' is not from 0 to 1"),
    ],
)
def test_wrong_usage_is_reported(folder: Path, capsys: Captured, words: list[str], message: str) -> None:
    assert main(["eval", "run", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_suite_with_mistakes_is_not_run(folder: Path, capsys: Captured) -> None:
    (folder / "bad.yaml").write_text("tests: [{id: a, criteria: x, inputs: hi}]")
    assert main(["eval", "run", "bad.yaml"]) == 2
    err = capsys.readouterr().err
    assert 'bad.yaml:1:30: error: a test has no key "inputs"' in err
    assert 'Did you mean "input"?' in err


def test_the_exit_code_of_results() -> None:
    suite = Suite(name="s", cases=(Case(id="a"), Case(id="b")))
    began = EvalBegan(suite=suite, targets=(TargetSpec(name="a"),))
    assert running.exit_code(fold_facts([began, CaseDone(row("a", 1.0)), CaseDone(row("b", 1.0))])) == 0
    assert running.exit_code(fold_facts([began, CaseDone(row("a", 1.0))])) == 1
    assert running.exit_code(fold_facts([began, CaseDone(row("a", 1.0)), CaseDone(failed("b"))])) == 1
    assert running.exit_code(fold_facts([began, CaseDone(failed("a")), CaseDone(failed("b"))])) == 3


def test_a_cluster_is_named_in_place_of_a_number(
    upstream: Upstream, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["eval", "run", SUITE, "--target", "acme/m", "--workers"]
    assert main([*words, "ray://head:20001?cores=4"]) == 2
    assert "is not the address of a cluster" in capsys.readouterr().err
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert main([*words, "ray://head:20001"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Ray is not installed here" in err
    assert "pip install 'sightline[ray]'" in err
    assert upstream.seen == []
    assert main(["eval", "show"]) == 0
    assert SUITE not in capsys.readouterr().out, "nothing was begun"


def test_target_without_model_requests_needs_no_cluster(folder: Path, capsys: Captured) -> None:
    assert main(["eval", "run", SUITE, "--target", "all", "--workers", "ray://head:20001", "--json"]) == 0
    assert told(capsys)["passed"] is True


def test_dry_run_lists_each_case_with_what_it_would_send(upstream: Upstream, folder: Path, capsys: Captured) -> None:
    words = ["eval", "run", SUITE, "--target", "acme/m", "--target", "all", "--trials", "2", "--dry-run"]
    assert main(words) == 0
    head = capsys.readouterr().out.splitlines()[0]
    assert head.split() == ["CASE", "TARGET", "TRIALS", "TURNS", "TOKENS", "REQUEST"]
    assert main([*words, "--json"]) == 0
    first, second, *_ = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["case"], first["target"], first["trials"], first["turns"]) == ("france", "acme/m", 2, 1)
    assert (first["tokens"] > 5, len(first["request"])) == (True, 16)
    assert (second["target"], second["tokens"], second["request"]) == ("all", None, "")
    assert not upstream.seen
    assert main(["eval", "show"]) == 0
    assert "no runs" in capsys.readouterr().err


def test_case_that_cannot_be_sent_is_reported(folder: Path, capsys: Captured) -> None:
    suite = folder / "s.yaml"
    suite.write_text("tests: [{id: a, criteria: x, input: [{role: user, content: [{type: image, value: a.png}]}]}]")
    (folder / "a.png").write_text("no picture")
    assert main(["eval", "run", "s.yaml", "--target", "all", "--dry-run"]) == 1
    assert "a.png is not a picture" in capsys.readouterr().out


def test_every_form_holds_the_results_of_all_runs(tmp_path: Path) -> None:
    exports = Exports(str(tmp_path / "out"), {"jsonl": str(tmp_path / "r.jsonl"), "junit": str(tmp_path / "r.xml")})
    exports.check()
    exports.add(standing(row("c1", 1.0)))
    exports.add(standing(row("c2", 0.0)))
    exports.write()
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == sorted(each.file for each in FORMATS)
    assert (tmp_path / "r.jsonl").read_bytes() == (tmp_path / "out/results.jsonl").read_bytes()
    assert (tmp_path / "r.xml").read_bytes() == (tmp_path / "out/junit.xml").read_bytes()
    rows = [json.loads(line) for line in (tmp_path / "out/index.jsonl").read_text().splitlines()]
    assert [each["test_id"] for each in rows] == ["c1", "c2"]
    (summary,) = json.loads((tmp_path / "out/summary.json").read_text())
    assert (summary["target"], summary["passed"]) == ("a", 1)


def test_unwritable_export_path_is_rejected_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Fault):
        Exports(files={"jsonl": str(tmp_path / "file" / "r.jsonl")}).check()
    with pytest.raises(Fault):
        Exports(files={"junit": str(tmp_path)}).write()


def test_a_look_at_a_place_leaves_nothing_there_and_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text("of yesterday")
    exports = Exports(str(tmp_path / "out"), {"jsonl": str(tmp_path / "r.jsonl"), "junit": str(tmp_path / "r.xml")})
    exports.check()
    assert not (tmp_path / "r.jsonl").exists()
    assert not list((tmp_path / "out").iterdir())
    assert (tmp_path / "r.xml").read_text() == "of yesterday"


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    """As on a disk that is full, which a limit of the system is like."""
    place = tmp_path / "r.jsonl"
    place.write_text("of yesterday")
    exports = Exports(files={"jsonl": str(place)})
    exports.add(standing(row("c1", 1.0)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        with pytest.raises(Fault) as caught:
            exports.write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert str(place) in caught.value.message
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("r.jsonl", "of yesterday")]


def test_a_pipe_is_written_to_and_a_link_is_followed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "there").mkdir()
    (tmp_path / "r.xml").symlink_to(tmp_path / "there" / "r.xml")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        exports = Exports(files={"jsonl": str(pipe), "junit": str(tmp_path / "r.xml")})
        exports.check()
        exports.add(standing(row("c1", 1.0)))
        exports.write()
        assert json.loads(os.read(reader, 65536))["case"] == "c1"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert (tmp_path / "r.xml").is_symlink()
    assert b"c1" in (tmp_path / "there" / "r.xml").read_bytes()


def test_export_format_that_was_not_requested_is_not_generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*_words: object, **_more: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr("sightline.cli.evals.report.to_junit", unwanted)
    exports = Exports(files={"jsonl": str(tmp_path / "r.jsonl")})
    exports.add(standing(row("c1", 1.0)))
    exports.write()
    monkeypatch.setattr("sightline.cli.evals.report.to_jsonl", unwanted)
    Exports().write()
    assert [each.name for each in tmp_path.iterdir()] == ["r.jsonl"]
