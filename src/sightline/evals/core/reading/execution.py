"""How a suite or a case wants to be run."""

from typing import Literal, cast, get_args

from sightline.catalog.problem import quote_word
from sightline.evals.core.reading.findings import SuiteFindings
from sightline.evals.core.reading.node import Node
from sightline.evals.core.reading.old_names import OF_EXECUTION, OF_TRIALS, rename_old_keys
from sightline.evals.core.suite import Execution, Trials
from sightline.evals.core.target import FileForm

KEYS = (
    *("target", "targets", "workers", "assertions", "assert", "evaluators", "skip_defaults", "cache", "trials"),
    *("budget_usd", "fail_on_error", "threshold", "file_form"),
)
_STRATEGIES = ("pass_at_k", "mean", "confidence_interval")
_MOST_WORKERS = 50
_MOST_TRIALS = 10_000


def read_execution(owner: Node, findings: SuiteFindings) -> Execution:
    """What stands under `execution`, and a `target` beside it. Its graders are read elsewhere."""
    node = owner.get("execution")
    above = _target_names(owner, findings)
    if node is None or not findings.is_mapping(node, "execution"):
        return Execution(targets=above)
    node = rename_old_keys(node, OF_EXECUTION, findings)
    findings.check_keys(node, KEYS, "execution")
    workers = findings.number(node, "workers", least=1, most=_MOST_WORKERS, is_whole=True)
    return Execution(
        targets=tuple(dict.fromkeys((*above, *_target_names(node, findings)))),
        workers=None if workers is None else int(workers),
        trials=_trials(node, findings),
        budget_usd=findings.number(node, "budget_usd", least=0),
        threshold=findings.number(node, "threshold", least=0, most=1),
        cache=findings.flag(node, "cache"),
        fail_on_error=findings.flag(node, "fail_on_error"),
        file_form=cast(FileForm | None, findings.choice(node, "file_form", get_args(FileForm)) or None),
        skip_defaults=bool(findings.flag(node, "skip_defaults")),
    )


def _target_names(owner: Node, findings: SuiteFindings) -> tuple[str, ...]:
    names = [findings.text(owner, "target")]
    targets = owner.get("targets")
    for item in [] if targets is None else findings.items(targets, "targets", "Begin each target with a dash."):
        if item.text is not None:
            names.append(item.text)
        elif findings.is_mapping(item, "a target", "Write its name."):
            findings.check_keys(item, ("name", "use_target", "hooks"), "a target")
            name = findings.text(item, "use_target") or findings.text(item, "name")
            if name and name in names:
                findings.odd(item, f"the target {quote_word(name)} is named twice, and asked once", "Name it once.")
            names.append(name)
            if item.get("hooks") is not None:
                findings.odd(item, "hooks of a target are not run", "Run them before the evals, in the shell.")
            if not names[-1]:
                findings.wrong(item, "the target has no name", "Write name: ….")
    return tuple(dict.fromkeys(filter(None, names)))


def _trials(owner: Node, findings: SuiteFindings) -> Trials | None:
    node = owner.get("trials")
    if node is None:
        return None
    if isinstance(node.value, int) and not isinstance(node.value, bool):
        node = Node({"count": Node(node.value, node.place, node.path)}, node.place, node.path)
    if not findings.is_mapping(node, "trials", f"Write {quote_word('trials: {count: 3}')}."):
        return None
    node = rename_old_keys(node, OF_TRIALS, findings)
    findings.check_keys(node, ("count", "strategy", "cost_limit_usd"), "trials")
    count = findings.number(node, "count", least=1, most=_MOST_TRIALS, is_whole=True)
    strategy = findings.choice(node, "strategy", _STRATEGIES) or "mean"
    if strategy != "mean":
        message = f"strategy: {strategy} makes no difference: every trial is told, with mean, interval and pass@k"
        findings.odd(node.members["strategy"], message, "Leave it out, or look at the figure that you want.")
    return Trials(
        count=1 if count is None else int(count),
        strategy=cast(Literal["pass_at_k", "mean", "confidence_interval"], strategy),
        cost_limit_usd=findings.number(node, "cost_limit_usd", least=0),
    )
