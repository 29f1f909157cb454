"""Whether Sightline's memory stays where it is over many exchanges."""

from bench.peers.measuring import running, upstream
from bench.peers.scenarios import SCENARIOS
from bench.peers.subjects import SIGHTLINE_SUBJECT

EXCHANGES = 50_000
STEP = 5_000
# Growth between the first and the last third that still counts as flat.
FLAT = 0.10


def report() -> str:
    """Memory after every 5,000 exchanges at 32 connections."""
    load = next(each for each in SCENARIOS if each.name == "whole, 32")
    samples: list[float] = []
    resident: list[float] = []
    completed = 0.0
    with upstream() as port, running(SIGHTLINE_SUBJECT, port, load) as sightline:
        assert sightline.tree is not None
        sightline.load(load, requests=STEP)
        for _ in range(EXCHANGES // STEP):
            completed += float(sightline.load(load, requests=STEP)["requests"])
            samples.append(sightline.tree.own_memory())
            resident.append(sightline.tree.memory()[0])
        sightline.tree.settled_cpu_seconds()
        idle, peak = sightline.tree.memory()
    third = len(samples) // 3
    growth = sum(samples[-third:]) / sum(samples[:third]) - 1
    rows = [
        f"| {(index + 1) * STEP:,} | {own:.1f} | {whole:.1f} |"
        for index, (own, whole) in enumerate(zip(samples, resident, strict=True))
    ]
    verdict = "flat" if growth <= FLAT else "**not flat**"
    short = "" if completed == EXCHANGES else f" **Only {completed:,.0f} of them were answered in full.**"
    return "\n".join(
        [
            f"## Memory over {EXCHANGES:,} exchanges at 32 connections\n",
            "| exchanges after the warm-up | own MB | resident MB, with files |\n|---:|---:|---:|",
            *rows,
            f"\nResident and idle afterwards: {idle:.1f} MB; at the most {peak:.1f} MB. Own memory from the first "
            f"third to the last: {growth:+.1%}: {verdict}.{short}",
        ]
    )
