import asyncio
from pathlib import Path

import pytest

from sightline.build.configured import configuration
from sightline.build.eval_page import evals_of, suites_place
from sightline.build.evaluating import open_evaluation
from sightline.build.machine import SystemClock
from sightline.server.workbench.chatting.wanted import Query


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
            store = evaluation.surroundings.recorded("a test")
            evals = evals_of(loaded, evaluation, store, folder, SystemClock())
            assert await evals.listed(Query("")) == []
            assert (await evals.suites.listed()).folder == "evals"
            await evals.close()

    asyncio.run(story())
