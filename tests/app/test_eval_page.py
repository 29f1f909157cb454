import asyncio
import json
from pathlib import Path

import pytest

from sightline.app.configuration import configuration
from sightline.app.evals import evals_of, open_evaluation, suites_place
from sightline.app.machine import SystemClock
from sightline.cli.program import main
from sightline.web.bodies import Query
from tests.cli.evals.eval_folder import eval_folder
from tests.eval_stage import KNOWN, knows
from tests.gateway_server import served


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


def test_the_page_gets_what_it_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = configuration(None)

    async def story() -> None:
        root, folder = suites_place(loaded)
        async with open_evaluation(loaded, str(tmp_path / "data"), root) as evaluation:
            store = evaluation.surroundings.require_store("a test")
            evals = evals_of(loaded, evaluation, store, folder, SystemClock())
            assert await evals.list_runs(Query("")) == []
            assert (await evals.suites.list_suites()).folder == "evals"
            await evals.close()

    asyncio.run(story())


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
