"""The command line: `sightline COMMAND`, one file a command.

It may import everything, and imports it late: help and usage errors must come at once. Output goes to stdout and
nothing else does; errors are one line with a code, and a hint below.
"""

from sightline.cli.program import main, parser

__all__ = ["main", "parser"]
