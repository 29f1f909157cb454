import json
from pathlib import Path

import pytest

from sightline.app.configuration import configuration
from sightline.app.engine import nowhere
from sightline.app.evals import elsewhere, evals_of, introduction, open_evaluation, suites_place
from sightline.app.machine import SystemClock
from sightline.cli.program import main
from sightline.errors import Fault
from sightline.evals.core.run_state import RunOptions
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.evals.service.cluster.host_pool import Needs
from sightline.web.bodies import Query
from tests.cli.evals.eval_folder import eval_folder
from tests.cluster_stage import FakeWorker, NearHostPool, opens
from tests.eval_stage import CAPITALS, KNOWN, knows, suite_of, verdicts
from tests.gateway_server import served
from tests.upstream import Upstream

TOOLS = '''
def capital(country: str) -> str:
    """Look it up."""
    return "Paris"
'''


async def test_what_is_configured_is_what_evals_run_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "sk-test-1234567890")
    root = tmp_path / "root"
    root.mkdir()
    (root / "tools.py").write_text(TOOLS)
    async with Upstream() as upstream:
        upstream.script = [knows(upstream, KNOWN)]
        (root / "sightline.toml").write_text(
            f'[providers.acme]\ndialect = "openai-chat"\nbase_url = "{upstream.url}"\nkey_env = "ACME_KEY"\n'
            '[tools.look]\npython = "tools.py"\nallow = ["*"]\n[ask]\nmodel = "acme/m"\n'
        )
        targets = [
            TargetSpec(name="usual"),
            TargetSpec(name="agent", model="acme/m", toolsets=("look",)),
            TargetSpec(name="shell", cli=CommandSpec(command="echo key: ${ACME_KEY:-none}")),
        ]
        data = str(tmp_path / "data")
        loaded = configuration(str(root / "sightline.toml"))
        async with open_evaluation(loaded, data, root) as evals:
            suite = suite_of(CAPITALS, root)
            standing = await evals.run(suite, targets, RunOptions(), lambda _: None, run="e_1")
        assert [result.status for result in standing.results if result.target != "shell"].count("ok") == 4
        assert {each.observation.text for each in standing.results if each.target == "shell"} == {"key: none"}
        assert any(seen.json().get("tools") for seen in upstream.seen)
        async with open_evaluation(loaded, data, root) as evals:
            again = await evals.run(suite, targets[:1], RunOptions(), lambda _: None)
            assert all(result.cached for result in again.results)
            assert verdicts(again) == {"france": "pass", "italy": "pass", "spain": "fail"}
            assert (await evals.show("e_1")).state == "ended"


def test_cluster_receives_the_files_and_variables_each_toolset_needs(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in ("tools/look.py", "mcp.json", "work/a.txt", "hooks.json", "alone.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text('{"headers": {"a": "${TOKEN}", "b": "${env:OTHER:-x} ${TOKEN}"}}')
    (root / "conf").mkdir()
    (root / "conf/sightline.toml").write_text(
        '[tools.look]\npython = "../tools/look.py"\nhooks = "../hooks.json"\n[tools.servers]\nmcp = "../mcp.json"\n'
        '[tools.files]\nfolder = "../work"\n[tools.away]\npython = "/elsewhere/t.py"\n'
        '[tools.alone]\npython = "../alone.py"\n'
    )
    host_pool = NearHostPool(lambda _root: opens(FakeWorker()), tmp_path)
    there = elsewhere(configuration(str(root / "conf/sightline.toml")), host_pool, nowhere, root)
    assert there.config == "conf/sightline.toml"
    assert there.ours == introduction()
    assert there.toolsets == {
        "look": Needs(("tools/look.py", "hooks.json", "tools")),
        "servers": Needs(("mcp.json",), ("TOKEN", "OTHER")),
        "files": Needs(("work",)),
        "away": Needs(),
        "alone": Needs(("alone.py",)),
    }
    (tmp_path / "sightline.toml").write_text("")
    assert (
        elsewhere(configuration(str(tmp_path / "sightline.toml")), host_pool, nowhere, root).config == "sightline.toml"
    )


async def test_invalid_cluster_address_is_rejected_before_anything_is_opened(tmp_path: Path) -> None:
    (tmp_path / "sightline.toml").write_text("")
    loaded = configuration(str(tmp_path / "sightline.toml"))
    with pytest.raises(Fault, match="is not the address of a cluster"):
        async with open_evaluation(loaded, str(tmp_path / "data"), tmp_path, cluster="ray:nowhere"):
            pass
    assert not (tmp_path / "data").exists()


def test_suites_are_beside_the_configuration_in_its_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "app").mkdir()
    file = tmp_path / "app" / "sightline.toml"
    file.write_text("")
    assert suites_place(configuration(str(file))) == (tmp_path, "app/evals")
    file.write_text('[evals]\nfolder = ".."\n')
    assert suites_place(configuration(str(file))) == (tmp_path, "")
    file.write_text('[evals]\nfolder = "../../elsewhere"\n')
    assert suites_place(configuration(str(file))) == (tmp_path.parent / "elsewhere", "")
    file.unlink()
    monkeypatch.chdir(tmp_path)
    assert suites_place(configuration(None)) == (tmp_path, "evals")


async def test_the_page_gets_what_it_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = configuration(None)
    root, folder = suites_place(loaded)
    async with open_evaluation(loaded, str(tmp_path / "data"), root) as evaluation:
        store = evaluation.surroundings.require_store("a test")
        relay = evaluation.engine.relay
        evals = evals_of(loaded, evaluation, store, folder, SystemClock(), relaying=lambda _loaded: relay)
        assert await evals.list_runs(Query("")) == []
        assert (await evals.suites.list_suites()).folder == "evals"
        await evals.close()


def test_the_page_runs_again_what_targets_of_agentv_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with eval_folder(tmp_path, monkeypatch) as upstream:
        (tmp_path / ".agentv").mkdir()
        (tmp_path / ".agentv" / "targets.yaml").write_text(
            "targets:\n  - {name: theirs, provider: openai, model: m, api_key: '${{ MY_KEY }}',"
            f" base_url: '{upstream.url}/v1'}}\n"
        )
        (tmp_path / ".env").write_text("MY_KEY=sk-from-the-file\n")
        assert main(["eval", "run", "capitals.eval.yaml", "--target", "theirs", "--json"]) == 1
        run = json.loads(capsys.readouterr().out)["run"]
        upstream.script = [knows(upstream, KNOWN | {"Spain": "Madrid"})]
        with served(tmp_path, (tmp_path / "sightline.toml").read_text()) as page:
            assert page.post(f"/api/evals/{run}/rerun")[0] == 200
            while (shown := page.api(f"/api/evals/{run}"))["state"] == "running":
                pass
            assert (shown["state"], shown["summary"][0]["pass_rate"]) == ("ended", 1.0)
            (cell,) = [row["cells"][0] for row in shown["matrix"] if row["case"] == "spain"]
            found = page.api(f"/api/evals/{run}/case?case=spain&target={cell['target']}")
            assert page.api(f"/api/exchanges/{found['exchanges'][0]}")
        assert len(upstream.seen) == 4
        assert {seen.header("authorization") for seen in upstream.seen} == {"Bearer sk-from-the-file"}
    kept = b"".join(each.read_bytes() for each in (tmp_path / "data").rglob("*") if each.is_file())
    assert b"sk-from-the-file" not in kept
