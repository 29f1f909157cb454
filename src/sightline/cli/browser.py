"""Opens the page in a browser, if there is a desktop."""

import os
import sys
import threading
import webbrowser

from sightline.cli.terminal import is_terminal


def open_page(link: str) -> None:
    """Open it without waiting for the browser."""
    has_screen = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if has_screen and is_terminal(sys.stdout):
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
