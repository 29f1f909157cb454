"""One browser for the page's tests, and one program for each module of them; every test finds them as new."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.agent_page import AgentDesk, agent_desk
from tests.browser import is_browser_shared, sharing_a_browser
from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import chat_stage
from tests.eval_page import Scene, eval_scene
from tests.gateway_server import usual_port
from tests.page_stage import PageStage, page_stage

_HERE = Path(__file__).parent
_shared = ExitStack()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Open the browser before the first test here, also where a worker comes back."""
    if not is_browser_shared():
        _shared.enter_context(sharing_a_browser())
        _shared.enter_context(usual_port())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """Close it behind the last test here: the tests of other rooms run loops where Playwright would run its own."""
    try:
        return (yield)
    finally:
        if nextitem is None or _HERE not in nextitem.path.parents:
            _shared.close()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    _shared.close()


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


@pytest.fixture
def free(stage: PageStage) -> PageStage:
    """Nothing is held."""
    stage.person.put("/api/interception", {"mode": "off"})
    return stage


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentDesk]:
    """A program in agent mode, with tools."""
    with agent_desk(tmp_path_factory.mktemp("agent")) as made:
        yield made


@pytest.fixture
def talk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatDesk]:
    """A chat of its own. A module names more configuration in CONFIG, and what else all topics have in TOPICS."""
    with chat_stage(tmp_path_factory.mktemp("talk"), getattr(request.module, "CONFIG", "")) as made:
        made.done("PUT", "topics", {"model": "acme/large"} | getattr(request.module, "TOPICS", {}))
        yield made


@pytest.fixture(scope="module")
def _scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with eval_scene(tmp_path_factory.mktemp("evals")) as made:
        yield made


@pytest.fixture
def scene(_scene: Scene) -> Scene:
    """A program with a suite that nobody has changed."""
    return _scene.ready()
