import asyncio

import pytest

from sightline.web.asgi import Heard
from sightline.web.routes import ApiCall, Handler, Routes


def handler(name: str) -> Handler:
    async def answered(_call: ApiCall) -> object:
        return name

    return answered


async def answered(handler: Handler, call: ApiCall) -> object:
    return await handler(call)


async def nothing() -> Heard:
    return {"type": "http.disconnect"}


ROUTES = Routes(
    {
        "a": {"GET": handler("a")},
        "a/*": {"GET": handler("a/*")},
        "a/new": {"GET": handler("a/new")},
        "a/*/b/*": {"GET": handler("a/*/b/*")},
        "c/d": {"GET": handler("c/d")},
    }
)


@pytest.mark.parametrize(
    ("path", "pattern", "names"),
    [
        ("a", "a", ()),
        ("a/new", "a/new", ()),
        ("a/1", "a/*", ("1",)),
        ("a/*", "a/*", ("*",)),
        ("a/", "a/*", ("",)),
        ("a/1/b/2%2F3", "a/*/b/*", ("1", "2%2F3")),
        ("c/d", "c/d", ()),
    ],
)
def test_a_path_means_the_pattern_that_fits_it_best(path: str, pattern: str, names: tuple[str, ...]) -> None:
    found = ROUTES.find(path)
    assert found is not None
    methods, stood_for = found
    call = ApiCall(stood_for, "", nothing)
    assert asyncio.run(answered(methods["GET"], call)) == pattern
    assert stood_for == names
    assert not names or call.name == names[0]


@pytest.mark.parametrize("path", ["", "b", "c", "a/1/b", "a/new/b/2", "c/d/e", "*"])
def test_nothing_else_is_there(path: str) -> None:
    assert ROUTES.find(path) is None
