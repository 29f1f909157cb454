"""What a run would send, and about how much that is. Nothing is sent."""

import argparse
import asyncio

from sightline.app.eval_targets import SuiteTargets
from sightline.app.evals import open_evaluation
from sightline.cli.evals.suites import NamedSuite
from sightline.cli.evals.table import table
from sightline.cli.terminal import harmless, write
from sightline.errors import Fault
from sightline.evals.core.options import RunOptions, trials_of
from sightline.evals.core.selection import select_cases, targets_of
from sightline.evals.core.suite import Case, Suite
from sightline.evals.service.evaluation import CasePreview, Evaluation
from sightline.model.json import JsonObject
from sightline.wire.jsontext import encode

_HEAD = ("CASE", "TARGET", "TRIALS", "TURNS", "TOKENS", "REQUEST")
_RIGHT = frozenset({2, 3, 4})


def dry_run(
    each: NamedSuite, suite: Suite, answering: SuiteTargets, options: RunOptions, arguments: argparse.Namespace
) -> bool:
    """Print it, and return whether every case can be sent. One that cannot be says why, in place of its hash."""
    rows = asyncio.run(_rows(each, suite, answering, options, arguments))
    are_sendable = not any(row["error"] for row in rows)
    if arguments.json:
        write(b"".join(encode(row) + b"\n" for row in rows))
        return are_sendable
    cells = [[_cell(row, name) for name in _HEAD] for row in rows]
    lines = table([_HEAD, *cells], right=_RIGHT)
    lines += ["", f"{len(rows)} rows, and nothing was sent. Judges and tools come on top of this."]
    write(("\n".join(lines) + "\n").encode("utf-8", "replace"))
    return are_sendable


def _cell(row: JsonObject, name: str) -> str:
    value = row["error"] if name == "REQUEST" and row["error"] else row[name.lower()]
    return "" if value is None else harmless(str(value))


async def _rows(
    each: NamedSuite, suite: Suite, answering: SuiteTargets, options: RunOptions, arguments: argparse.Namespace
) -> list[JsonObject]:
    specs = {spec.name: spec for spec in answering.targets}
    rows: list[JsonObject] = []
    async with open_evaluation(
        answering.loaded, arguments.data, each.root, store=arguments.store, apart=True
    ) as evaluation:
        for case in select_cases(suite, options):
            for name in targets_of(case, tuple(specs), options):
                preview: CasePreview | Fault
                try:
                    preview = evaluation.preview(suite, case.id, specs[name], options)
                except Fault as fault:
                    preview = fault
                rows.append(_row(case, name, trials_of(case, suite, options), preview, evaluation))
    return rows


def _row(case: Case, target: str, trials: int, preview: CasePreview | Fault, evaluation: Evaluation) -> JsonObject:
    prepared = None if isinstance(preview, Fault) else preview.prepared
    return {
        "case": case.id,
        "target": target,
        "trials": trials,
        "turns": len(case.turns) or 1,
        "tokens": None if prepared is None else evaluation.engine.estimate(prepared).tokens,
        "request": "" if prepared is None else prepared.sha256[:16],
        "error": preview.message if isinstance(preview, Fault) else None,
    }
