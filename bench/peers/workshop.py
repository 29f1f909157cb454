"""What the comparison needs and users do not: compiled programs, and peers in environments of their own, in .bench/."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parent.parent / ".bench"
# Names of the Debian package that brings nginx's program, newest layout first.
NGINX_PACKAGES = ("nginx", "nginx-light", "nginx-core")


class MissingError(Exception):
    """Something cannot be had here; the text says what and why."""


def compiled(name: str) -> Path:
    """The program of `name`.c."""
    source, program = HERE / f"{name}.c", CACHE / name
    newest = max(each.stat().st_mtime for each in (source, HERE / "words.h"))
    if not program.exists() or program.stat().st_mtime < newest:
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            raise MissingError("no C compiler; on Debian and Ubuntu: apt install gcc")
        CACHE.mkdir(exist_ok=True)
        _run([compiler, "-O2", "-Wall", "-Wextra", "-o", str(program), str(source)])
    return program


def environment(name: str, *packages: str) -> Path:
    """The folder of programs of a Python environment with these packages."""
    folder = CACHE / name
    stamp = folder / ".installed"
    wanted = "\n".join(packages)
    if not stamp.exists() or stamp.read_text() != wanted:
        _say(f"installing {', '.join(packages)} into {folder.name}")
        CACHE.mkdir(exist_ok=True)
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        pip = [str(folder / "bin/python"), "-m", "pip", "-qq", "--disable-pip-version-check"]
        _run([*pip, "install", *packages])
        stamp.write_text(wanted)
    return folder / "bin"


def node_program(
    program: str, packages: Mapping[str, str], overrides: Mapping[str, str], *, name: str = "node"
) -> Path:
    """A program out of npm packages, with these versions of what they need, in a folder of this name."""
    npm = shutil.which("npm")
    if npm is None:
        raise MissingError("no npm; on Debian and Ubuntu: apt install npm")
    folder = CACHE / name
    stamp = folder / ".installed"
    wanted = json.dumps({"private": True, "dependencies": dict(packages), "overrides": dict(overrides)})
    if not stamp.exists() or stamp.read_text() != wanted:
        _say(f"installing {', '.join(packages)} into {folder.name}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(wanted)
        _run([npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)])
        stamp.write_text(wanted)
    return folder / program


def nginx() -> Path:
    """The system's nginx, or its package unpacked beside the other peers."""
    if found := shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin"):
        return Path(found)
    folder = CACHE / "nginx"
    program = folder / "usr/sbin/nginx"
    if not program.exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            raise MissingError("no nginx, and no apt-get to get it with")
        _say("unpacking nginx")
        folder.mkdir(parents=True, exist_ok=True)
        for package in NGINX_PACKAGES:
            if subprocess.run(["apt-get", "-qq", "download", package], cwd=folder, capture_output=True).returncode:
                continue
            for archive in folder.glob("*.deb"):
                _run(["dpkg-deb", "-x", str(archive), str(folder)])
                archive.unlink()
            if program.exists():
                break
        else:
            raise MissingError("no nginx; on Debian and Ubuntu: apt install nginx-light")
    return program


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise MissingError(f"{Path(command[0]).name} failed: {lines[-1][:200] if lines else done.returncode}")


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
