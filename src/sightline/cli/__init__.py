"""The command line: `sightline COMMAND`.

It may import everything, and imports it late, so that help and usage errors appear at once. Only results go to stdout;
errors go to stderr as one line with a code, and a hint below.
"""

from sightline.cli.program import main, parser

__all__ = ["main", "parser"]
