"""What a system lacks is refused in one line, and no other package asks which system it is."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sightline
from sightline.errors import Code, Fault
from sightline.platform.support import Feature, is_supported, missing, require

PACKAGE = Path(sightline.__file__).parent
CERTIFICATES = {"cli/clients.py", "transport/http/dialling.py"}
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


WITHOUT_POSIX = """
import asyncio, importlib, multiprocessing, os, select, signal, socket, ssl, subprocess, sys, tempfile
import mcp.client.session, websockets  # they ask sys.platform themselves

posix = {
    os: "fchmod fwalk getegid geteuid getgid getpgid getpgrp getuid killpg mkfifo nice posix_fallocate setsid "
        "tcgetpgrp sched_getaffinity umask waitid O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK",
    select: "epoll poll POLLIN", signal: "SIGHUP SIGKILL SIGQUIT SIGUSR1 SIGUSR2", socket: "recv_fds send_fds",
}
for module, names in posix.items():
    for name in names.split():
        vars(module).pop(name, None)
for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty", "uvloop"):
    sys.modules[name] = None
for name in sys.argv[1:]:
    importlib.import_module(name)
"""
BUILT_IN_TOOLS = PACKAGE / "agent/tools/builtin"
"""They are not supported on Windows."""


def test_everything_else_loads_on_a_system_without_posix() -> None:
    names = [
        ".".join(("sightline", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for path in PACKAGE.rglob("*.py")
        if path.stem != "__main__" and BUILT_IN_TOOLS not in path.parents and PACKAGE / "examples" not in path.parents
    ]
    command = [sys.executable, "-c", WITHOUT_POSIX, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
