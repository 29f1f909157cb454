"""What a system lacks is refused in one line, and no other package asks which system it is."""

import ast
from pathlib import Path

import pytest

import sightline
from sightline.errors import Code, Fault
from sightline.platform.support import Feature, is_supported, missing, require

PACKAGE = Path(sightline.__file__).parent
CERTIFICATES = {"cli/tls.py", "transport/http/dialling.py"}
"""They read the system's certificates, each in its own form."""
OF_ONE_SYSTEM = {"fcntl", "grp", "msvcrt", "pty", "pwd", "resource", "termios", "tty", "uvloop", "winreg"}


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_posix_systems_lack_nothing(platform: str) -> None:
    assert missing(platform) == ()


@pytest.mark.parametrize("feature", missing("win32"))
def test_what_windows_lacks_is_refused_with_what_to_do(feature: Feature) -> None:
    require(feature, "linux")
    assert not is_supported(feature, "win32")
    with pytest.raises(Fault, match="Windows does not support") as caught:
        require(feature, "win32")
    assert caught.value.code is Code.CONFIG
    assert caught.value.hint


def asks_which_system(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name("sys"), "platform") | ast.Attribute(ast.Name("os"), "name"):
                return True
            case ast.Import(names) if OF_ONE_SYSTEM & {each.name.partition(".")[0] for each in names}:
                return True
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in OF_ONE_SYSTEM:
                return True
            case _:
                pass
    return False


def test_no_other_package_asks_which_system_it_runs_on() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.parent != PACKAGE / "platform" and asks_which_system(ast.parse(path.read_bytes()))
    }
    assert found == CERTIFICATES
