"""Programs that the tests need and the system may lack: Debian's own tool brings them, where it may be asked."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")
_LOCK = Path(tempfile.gettempdir()) / "sightline-tests-install.lock"
_PATIENCE = 900


def brought(look: Callable[[], Found | None], package: str) -> Found | None:
    """What `look` finds, if need be once the package is installed; None where that cannot be done here. Workers take
    turns, because two installations at once end with an error."""
    found = look()
    apt = shutil.which("apt-get")
    if found is not None or apt is None or os.geteuid() != 0:
        return found
    with _LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = look()
        if found is None:
            quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            install = ["install", "-y", "--no-install-recommends", package]
            for step in (install, ["update"], install):  # the lists that the first package needed serve the next
                subprocess.run([apt, "-qq", *step], env=quiet, check=False, capture_output=True, timeout=_PATIENCE)
                if (found := look()) is not None:
                    break
    return found
