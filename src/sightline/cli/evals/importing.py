"""`sightline eval import`: a suite in our form, of a promptfoo file or of exchanges on record."""

import argparse
from pathlib import Path

from sightline.build.configured import configuration
from sightline.cli.evals import making
from sightline.cli.evals.suites import tell_problems
from sightline.cli.terminal import read, write
from sightline.errors import Code, Fault
from sightline.evals.place import Problem
from sightline.evals.reading.findings import Findings
from sightline.evals.reading.promptfoo import as_suite, is_promptfoo
from sightline.evals.reading.yaml_text import read_yaml
from sightline.evals.reading.yaml_written import written


def run(arguments: argparse.Namespace) -> int:
    """Import it; what is no file is the id of an exchange."""
    first, *others = arguments.sources
    if not Path(first).is_file():
        if "/" in first or Path(first).suffix:
            raise Fault(Code.USAGE, f"there is no file {first}", hint="Check the path.")
        return making.run(arguments)
    if others:
        raise Fault(Code.USAGE, "one file is imported at a time", hint="Name one.")
    text = suite_of(read(first), first)
    if arguments.to:
        making.append(text, arguments.to, configuration(arguments.config))
    else:
        write(text.encode())
    return 0


def suite_of(data: bytes, file: str) -> str:
    """A promptfoo file as a suite. What has no counterpart is told, and ends the command."""
    document = read_yaml(data, file)
    if isinstance(document, Problem):
        raise Fault(Code.USAGE, f"{document.place}: {document.message}", hint=document.suggestion)
    if not is_promptfoo(document):
        hint = "It has neither prompts nor providers. A suite of AgentV's runs as it is."
        raise Fault(Code.USAGE, f"{file} is no promptfoo file", hint=hint)
    findings = Findings()
    suite = as_suite(document, findings)
    tell_problems(findings.problems)
    if findings.has_errors:
        raise Fault(Code.USAGE, f"{file} cannot be imported whole", hint="Correct what is said above.")
    head, lines = written(suite.json)
    return "\n".join([*([head] if head else []), *(line.removeprefix("  ") for line in lines)]) + "\n"
