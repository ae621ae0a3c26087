"""What the keys of the calculator's results say, in sentences for people."""

from petard_worker.ratings.calculator import (
    GAMES_ASSUMED,
    Assumption,
    KFactor,
    KReason,
    Performance,
    PerformanceNote,
)

RULE_8_3_3 = "(FIDE B.02, 8.3.3)"
NOT_FIDE = "(what many online calculators use; not FIDE's rule)"
K_REASONS = {
    KReason.GIVEN: "as given",
    KReason.FIDE_NEW: f"fewer than 30 games {RULE_8_3_3}",
    KReason.FIDE_YOUNG: f"to the end of the year of the 18th birthday, below 2300 {RULE_8_3_3}",
    KReason.FIDE_USUAL: f"30 games or more, never rated 2400 {RULE_8_3_3}",
    KReason.FIDE_MASTER: f"rated 2400 or more, now or at any time before {RULE_8_3_3}",
    KReason.CALCULATOR_MASTER: f"rated 2400 or more {NOT_FIDE}",
    KReason.CALCULATOR_STRONG: f"rated 2100 or more, below 2400 {NOT_FIDE}",
    KReason.CALCULATOR_USUAL: f"rated below 2100 {NOT_FIDE}",
    KReason.EGF: "con for the rating (EGF, until 2021)",
    KReason.DWZ: "800 / (E + n) (DWZ)",
}
ASSUMPTIONS = {Assumption.GAMES: f"number of games not given: {GAMES_ASSUMED} or more assumed"}
PERFORMANCE_NOTES = {
    PerformanceNote.NOTIONAL: (
        "for {percent:.0f} % table 8.1.1 has no difference of its own: FIDE takes {dp:+d} notionally"
    ),
    PerformanceNote.NO_EXACT: (
        "none expects {percent:.0f} % exactly: the one that comes closest is infinite"
    ),
}


def k_why(factor: KFactor) -> str:
    """Return K and why it is what it is."""
    if factor.unlimited is None:
        return f"K {factor.k:g}: {K_REASONS[factor.reason]}"
    limit = f"{factor.together} games in one period, and K times games is at most 700 {RULE_8_3_3}"
    return f"K {factor.k:g} instead of {factor.unlimited:g}: {limit}"


def assumed(assumption: Assumption) -> str:
    """Return what had to be assumed to find K."""
    return ASSUMPTIONS[assumption]


def note_on(found: Performance, note: PerformanceNote) -> str:
    """Return what is to be said of a performance rating."""
    return PERFORMANCE_NOTES[note].format(percent=100 * found.p, dp=found.dp)
