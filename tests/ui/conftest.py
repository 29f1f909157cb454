"""One program and one browser for each module of the page's tests; every test finds them as new."""

from collections.abc import Iterator

import pytest

from tests.agent_page import AgentDesk, agent_desk
from tests.eval_page import Scene, eval_scene
from tests.page_stage import PageStage, page_stage


@pytest.fixture(scope="module")
def _stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageStage]:
    """A module names the dialect of its provider in SPOKEN, and more configuration in CONFIG."""
    spoken = getattr(request.module, "SPOKEN", "openai-chat")
    with page_stage(tmp_path_factory.mktemp("page"), spoken, getattr(request.module, "CONFIG", "")) as stage:
        yield stage


@pytest.fixture
def stage(_stage: PageStage) -> Iterator[PageStage]:
    """All of it, with nothing held, kept or ruled."""
    _stage.clean()
    yield _stage
    _stage.clean()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentDesk]:
    """A program in agent mode, with tools."""
    with agent_desk(tmp_path_factory.mktemp("agent")) as made:
        yield made


@pytest.fixture(scope="module")
def _scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with eval_scene(tmp_path_factory.mktemp("evals")) as made:
        yield made


@pytest.fixture
def scene(_scene: Scene) -> Scene:
    """A program with a suite that nobody has changed."""
    return _scene.ready()
