"""What Sightline is meant to hold beside the others, and whether it did."""

from dataclasses import dataclass

from bench.peers.comparing import Comparison
from bench.peers.measuring import Figures

ALONE, WHOLE, CROWD, AGENT, BURST, PACED = (
    "whole, 1", "whole, 32", "whole, 256", "agent, 8", "burst, 32", "paced, 64",
)  # fmt: skip
CPU_MICROSECONDS = {WHOLE: 120.0, ALONE: 220.0, AGENT: 850.0, BURST: 450.0}
"""On a core of about the year 2024; a slower one misses them."""
ALONE_MILLISECONDS = 1.0
OURS, WORKERS = "sightline", "sightline-2"
LITELLM_RATIO = 70.0
TENSORZERO_RATIO = 0.5
NGINX_WHOLE_RATIO = 6.0
NGINX_PACED_RATIO = 1.4
NGINX_CROWD_RATIO = 3.0
CHUNK_MILLISECONDS = 0.25
CROWD_SHARE = 0.7
MEMORY_MEGABYTES = 80.0
WORKERS_RATIO = 1.8
PAGE_RATIO = 1.1
RULE_RATIO = 2.0
TRANSLATED_RATIO = 3.0


@dataclass(frozen=True)
class Verdict:
    aim: str
    seen: str
    is_held: bool | None


def verdicts(comparison: Comparison) -> list[Verdict]:
    """One line for each aim; without a verdict where one side was not measured."""
    names = {scenario.name for scenario in comparison.scenarios}
    kinds = [kind for kind in ("", "varied ") if any(name.startswith("varied") is bool(kind) for name in names)]
    last = comparison.figures(OURS, comparison.scenarios[-1].name)
    memory = last.memory if last else None
    aim = f"memory after the run, all processes: at most {MEMORY_MEGABYTES:.0f} MB"
    is_small = memory is not None and memory <= MEMORY_MEGABYTES
    return [
        *(verdict for kind in kinds for verdict in _verdicts_on(comparison, kind)),
        _verdict(aim, memory, "{:.0f} MB", is_small),
    ]


def _verdicts_on(comparison: Comparison, kind: str) -> list[Verdict]:
    """The aims under the loads whose names begin so."""
    whole, crowd, burst, paced = (kind + name for name in (WHOLE, CROWD, BURST, PACED))
    found = [_own_cpu(comparison, kind + name, most) for name, most in CPU_MICROSECONDS.items()]
    alone = comparison.figures(OURS, kind + ALONE)
    slowest = alone.first_byte_p99 if alone else None
    aim = f"first byte, {kind}{ALONE}, 99 %: within {ALONE_MILLISECONDS:g} ms"
    found.append(_verdict(aim, slowest, "{:.2f} ms", slowest is not None and slowest <= ALONE_MILLISECONDS))
    pair = _pair(comparison, "litellm", whole)
    seen = pair and pair[1].cpu_in_all / pair[0].cpu_in_all
    aim = f"CPU, {whole}: at least {LITELLM_RATIO:.0f}x below LiteLLM"
    least = _nginx_beside(comparison, "litellm", whole)
    shown = "{:.0f}x below" + (f" (nginx: {1 / least:.0f}x)" if least else "")
    found.append(_verdict(aim, seen, shown, seen is not None and seen >= LITELLM_RATIO))
    limits = [
        ("tensorzero", "TensorZero", whole, TENSORZERO_RATIO),
        ("tensorzero", "TensorZero", burst, TENSORZERO_RATIO),
        ("nginx", "nginx", whole, NGINX_WHOLE_RATIO),
        ("nginx", "nginx", paced, NGINX_PACED_RATIO),
    ]
    for name, title, scenario, limit in limits:
        pair = _pair(comparison, name, scenario)
        seen = pair and pair[0].cpu_in_all / pair[1].cpu_in_all
        aim = f"CPU, {scenario}: at most {limit:g}x {title}'s"
        least = _nginx_beside(comparison, name, scenario)
        shown = "{:.2f}x" + (f" (nginx: {least:.2f}x)" if least else "")
        found.append(_verdict(aim, seen, shown, seen is not None and seen <= limit))
    pair = _pair(comparison, "nginx", crowd)
    seen = pair and pair[0].first_byte_p99 / pair[1].first_byte_p99
    aim = f"first byte, {crowd}, 99 %: at most {NGINX_CROWD_RATIO:g}x nginx's"
    found.append(_verdict(aim, seen, "{:.2f}x", seen is not None and seen <= NGINX_CROWD_RATIO))
    pair = _pair(comparison, "nginx", paced)
    added = pair and pair[0].chunk - pair[1].chunk
    aim = f"median per chunk, {paced}: at most {CHUNK_MILLISECONDS} ms above nginx"
    found.append(_verdict(aim, added, "{:+.3f} ms", added is not None and added <= CHUNK_MILLISECONDS))
    pair = _pair(comparison, WORKERS, whole)
    # Upstream and load take a core too, so that two more are not measured but counted from what a request costs.
    seen = pair and 2 * pair[0].cpu_in_all / pair[1].cpu_in_all
    aim = f"requests per second, {whole}, 2 workers on 2 cores: at least {WORKERS_RATIO:g}x those of 1 on 1, by CPU"
    found.append(_verdict(aim, seen, "{:.2f}x", seen is not None and seen >= WORKERS_RATIO))
    for name, title, limit in (("page", "with the page open", PAGE_RATIO), ("rule", "with a rule", RULE_RATIO)):
        found.append(_beside_plain(comparison, name, title, whole, limit))
    translated = (whole, burst)
    found += [_beside_plain(comparison, "translating", "translated", each, TRANSLATED_RATIO) for each in translated]
    few, many = comparison.figures(OURS, whole), comparison.figures(OURS, crowd)
    share = many.per_second / few.per_second if few and many else None
    aim = f"no collapse: requests per second at {crowd} at least {CROWD_SHARE:g}x those at {whole}"
    found.append(_verdict(aim, share, "{:.2f}x", share is not None and share >= CROWD_SHARE))
    return found


def _own_cpu(comparison: Comparison, scenario: str, most: float) -> Verdict:
    """What a request costs, with all that comes after it."""
    ours = comparison.figures(OURS, scenario)
    seen = ours.cpu_in_all if ours else None
    return _verdict(f"CPU, {scenario}: at most {most:g} µs", seen, "{:.0f} µs", seen is not None and seen <= most)


def _beside_plain(comparison: Comparison, name: str, title: str, scenario: str, limit: float) -> Verdict:
    """What another way of running Sightline costs, as a multiple of the plain one."""
    ours, other = comparison.figures(OURS, scenario), comparison.figures(name, scenario)
    seen = other.cpu_in_all / ours.cpu_in_all if ours and other else None
    aim = f"CPU, {scenario}, {title}: at most {limit:g}x that without"
    return _verdict(aim, seen, "{:.2f}x", seen is not None and seen <= limit)


def _pair(comparison: Comparison, other: str, scenario: str) -> tuple[Figures, Figures] | None:
    ours, theirs = comparison.figures(OURS, scenario), comparison.figures(other, scenario)
    return (ours, theirs) if ours and theirs and ours.cpu_in_all and theirs.cpu_in_all else None


def _nginx_beside(comparison: Comparison, other: str, scenario: str) -> float | None:
    """nginx's CPU as a multiple of another's: an aim that it would miss too is out of any proxy's reach."""
    nginx, theirs = comparison.figures("nginx", scenario), comparison.figures(other, scenario)
    return nginx.cpu_in_all / theirs.cpu_in_all if nginx and theirs and other != "nginx" else None


def _verdict(aim: str, seen: float | None, shown: str, is_held: bool) -> Verdict:  # noqa: FBT001
    return Verdict(aim, "not measured", None) if seen is None else Verdict(aim, shown.format(seen), is_held)
