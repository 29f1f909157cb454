"""Sealed parts: what a provider signed must come back as it was, where it was."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from sightline.dialects.dialect import Problem
from sightline.editing.draft import Draft
from sightline.editing.operations import Edit, Set
from sightline.model.comparison import of_part
from sightline.model.parts import Image, Part, Text, Thinking, ToolCall
from sightline.wire.pointer import join, resolve


@dataclass(frozen=True, slots=True)
class Seal:
    """A sealed part and the section that it stands in."""

    part: Part
    section: str


@dataclass(frozen=True, slots=True)
class BrokenSignature:
    """What is wrong with a sealed part, and the edits that put it back, if there are some."""

    problem: Problem
    repair: tuple[Edit, ...] = ()


def find_broken_signatures(draft: Draft) -> Iterator[BrokenSignature]:
    """Sealed parts that are not as the client sent them."""
    if not draft.is_dirty:
        return
    sent, here = _seals(draft.first), _seals(draft)
    vanished = {seal.section for signature, seals in sent.items() if signature not in here for seal in seals}
    for signature, seals in here.items():
        homes = sent.get(signature, [])
        sections = {home.section for home in homes}
        is_home = any(seal.section in sections for seal in seals)
        for seal in seals:
            if not homes:
                is_forged = seal.section in vanished
                words = "this seal was changed" if is_forged else "this seal is not one that the client sent"
                yield BrokenSignature(Problem(seal.part.at, words, "error" if is_forged else "warning"))
            elif not any(of_part(seal.part) == of_part(home.part) for home in homes):
                repair = tuple(_repair(draft, seal.part.at, homes[0].part.at))
                yield BrokenSignature(Problem(seal.part.at, "what this seal covers was changed"), repair)
            elif seal.section not in sections:
                words = (
                    "this sealed part is a copy of one that stands elsewhere" if is_home else "this sealed part moved"
                )
                yield BrokenSignature(Problem(seal.part.at, words, "warning" if is_home else "error"))


def _repair(draft: Draft, at: str, home: str) -> Iterator[Edit]:
    """The edits that give a value what it was, and touch of it only what differs."""
    value, sent = resolve(draft.document, at), resolve(draft.first.document, home)
    if isinstance(value, dict) and isinstance(sent, dict) and value.keys() == sent.keys():
        yield from (Set(pointer=join(at, key), value=sent[key]) for key in sent if sent[key] != value[key])
    else:
        yield Set(pointer=at, value=sent)


def _seals(draft: Draft) -> dict[str, list[Seal]]:
    found: dict[str, list[Seal]] = defaultdict(list)
    if draft.request is not None:
        for message in draft.request.messages:
            for part in message.parts:
                if isinstance(part, Text | Image | Thinking | ToolCall) and part.signature:
                    found[part.signature].append(Seal(part, draft.section_at(part.at)))
    return found
