"""In which order the characters of a line are drawn: the implicit part of the bidirectional algorithm.

Source: Unicode Standard Annex 9; numbers of rules are its own. Embeddings, overrides and isolates (X1 to X10)
are left out on purpose: a name must not be able to turn round what stands beside it, so who draws it shows
those characters as code points. Of the paired brackets (N0) those of PAIRS are known.
"""

import unicodedata
from itertools import groupby
from typing import NamedTuple

PAIRS = dict(zip("([{（［｛「『【〈《〔〖⟨⁅", ")]}）］｝」』】〉》〕〗⟩⁆", strict=True))
NEUTRAL = {"B", "S", "WS", "ON"}
STRONG = {"L": "L", "R": "R", "EN": "R", "AN": "R"}
"""What counts as which direction in N0 to N2."""


class LevelRun(NamedTuple):
    """Characters start to end (not included) of a line; an odd level runs from right to left."""

    start: int
    end: int
    level: int


def embedding_levels(text: str) -> list[int]:
    """Return the level of every character of a line that is a paragraph of its own."""
    original = [unicodedata.bidirectional(character) or "L" for character in text]
    # P2, P3
    base = next((0 if kind == "L" else 1 for kind in original if kind in ("L", "R", "AL")), 0)
    outside = "R" if base else "L"
    kinds = resolve_neutrals(
        resolve_brackets(text, resolve_weak(original, outside), original, outside), outside
    )
    levels = [base + raised(kind, base) for kind in kinds]
    # L1: what separates and the spaces at the end are part of the paragraph.
    at_end = True
    for i in reversed(range(len(text))):
        at_end = at_end and original[i] in ("WS", "S", "B", "BN")
        if at_end or original[i] in ("S", "B"):
            levels[i] = base
            at_end = True
    return levels


def raised(kind: str, base: int) -> int:
    """I1, I2."""
    if base:
        return 0 if kind == "R" else 1
    return {"L": 0, "R": 1}.get(kind, 2)


def resolve_weak(original: list[str], outside: str) -> list[str]:
    """W1 to W7."""
    kinds = []
    previous = outside
    for kind in original:  # W1; X9 removes BN, which this keeps with what it follows
        previous = previous if kind in ("NSM", "BN") else kind
        kinds.append(previous)
    strong = outside
    for i, kind in enumerate(kinds):  # W2, W3
        strong = kind if kind in ("L", "R", "AL") else strong
        kinds[i] = "AN" if kind == "EN" and strong == "AL" else kind
    kinds = ["R" if kind == "AL" else kind for kind in kinds]
    for i in range(1, len(kinds) - 1):  # W4
        before, after = kinds[i - 1], kinds[i + 1]
        single = kinds[i] == "CS" or (kinds[i] == "ES" and before == "EN")
        if single and before == after and before in ("EN", "AN"):
            kinds[i] = before
    start = 0
    for kind, group in groupby(list(kinds)):  # W5
        end = start + len(list(group))
        if kind == "ET" and "EN" in (*kinds[max(start - 1, 0) : start], *kinds[end : end + 1]):
            kinds[start:end] = ["EN"] * (end - start)
        start = end
    strong = outside
    for i, kind in enumerate(kinds):  # W6, W7
        strong = kind if kind in ("L", "R") else strong
        if kind in ("ES", "ET", "CS"):
            kinds[i] = "ON"
        elif kind == "EN" and strong == "L":
            kinds[i] = "L"
    return kinds


def resolve_brackets(text: str, kinds: list[str], original: list[str], outside: str) -> list[str]:
    """N0: a pair of brackets goes with what it holds, else with what stands before it."""
    kinds = list(kinds)
    for opening, closing in bracket_pairs(text, kinds):
        inside = {STRONG[kind] for kind in kinds[opening + 1 : closing] if kind in STRONG}
        if not inside:
            continue
        before = next((STRONG[kind] for kind in reversed(kinds[:opening]) if kind in STRONG), outside)
        direction = outside if outside in inside else before
        for at in (opening, closing):
            kinds[at] = direction
            after = at + 1
            while after < len(kinds) and original[after] in ("NSM", "BN"):
                kinds[after] = direction
                after += 1
    return kinds


def bracket_pairs(text: str, kinds: list[str]) -> list[tuple[int, int]]:
    """BD16: the pairs, by where they open."""
    opened: list[tuple[str, int]] = []
    pairs = []
    for i, character in enumerate(text):
        if kinds[i] != "ON":
            continue
        if character in PAIRS:
            opened.append((PAIRS[character], i))
            continue
        found = next((n for n in reversed(range(len(opened))) if opened[n][0] == character), None)
        if found is not None:
            pairs.append((opened[found][1], i))
            del opened[found:]
    return sorted(pairs)


def resolve_neutrals(kinds: list[str], outside: str) -> list[str]:
    """N1, N2: neutrals between two that agree go with them, others with the paragraph."""
    resolved: list[str] = []
    before = outside
    groups = [(neutral, list(group)) for neutral, group in groupby(kinds, lambda kind: kind in NEUTRAL)]
    for n, (neutral, group) in enumerate(groups):
        if not neutral:
            resolved += group
            before = STRONG[group[-1]]
            continue
        after = STRONG[groups[n + 1][1][0]] if n + 1 < len(groups) else outside
        resolved += [before if before == after else outside] * len(group)
    return resolved


def visual_order(levels: list[int]) -> list[LevelRun]:
    """L2: the runs of one level from left to right; inside a run of an odd level the last comes first."""
    runs = []
    start = 0
    for level, group in groupby(levels):
        end = start + len(list(group))
        runs.append(LevelRun(start, end, level))
        start = end
    for turned in range(max(levels, default=0), 0, -1):
        runs = with_turned(runs, turned)
    return runs


def with_turned(runs: list[LevelRun], least: int) -> list[LevelRun]:
    """Reverse every sequence of runs of this level or a higher one."""
    ordered: list[LevelRun] = []
    for high, group in groupby(runs, lambda run: run.level >= least):
        sequence = list(group)
        ordered += reversed(sequence) if high else sequence
    return ordered
