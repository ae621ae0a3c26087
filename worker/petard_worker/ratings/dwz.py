"""Deutsche Wertungszahl: the development coefficient E, and the K that follows from it.

Source: Deutscher Schachbund, "Wertungsordnung", annex 1.2, "Die Ermittlung des Entwicklungskoeffizienten E"
(schachbund.de/wertungsordnung.html); its symbols: R_o the old rating, W the score, W_e the expected one, f_B
the accelerator (Beschleunigungsfaktor), S_Br the brake (Bremszuschlag). One thing is not as there: the annex
rounds E to a whole number, and published results (those of wertungszahl.de) come out only without that.
"""

import math

GROWN_UP = 26.0
"""The age of who is given none: over 25."""
E_LOW, E_HIGH, E_HIGH_BRAKED = 5.0, 30.0, 150.0
BRAKE_BELOW = 1300.0


def k_factor(  # noqa: PLR0917 - what the formula needs
    rating: float, age: float | None, index: int, n: int, actual: float, expected: float
) -> float:
    """Return 800 / (E + n): what W - W_e of a tournament of n games is multiplied with.

    age: in years, None for a grown-up. index: how many tournaments of the player were rated before; a player
    without any counts as one with 1. actual, expected: W and W_e, sums over the n games.
    """
    return 800 / (development(rating, age, index, actual, expected) + n)


def development(rating: float, age: float | None, index: int, actual: float, expected: float) -> float:
    """Return E, 5 to 30, or to 150 where the brake is on; the higher, the slower the rating moves."""
    years = GROWN_UP if age is None else age
    E_0 = (rating / 1000) ** 4 + J(years)
    S_Br = brake(rating) if actual < expected else 0.0
    E = E_0 * (accelerator(rating) if years < 21 and actual >= expected else 1.0) + S_Br
    highest = E_HIGH_BRAKED if S_Br > 0 else min(E_HIGH, 5.0 * index)
    return max(E_LOW, min(E, highest))


def J(age: float) -> int:
    """Return the part of E that is for age: 5 up to 20 years, 10 from 21 to 25, 15 from 26."""
    if age < 21:
        return 5
    return 10 if age < 26 else 15


def accelerator(rating: float) -> float:
    """Return f_B, 0.5 to 1: makes youths rise faster who score what was expected or more."""
    return min(max(rating / 2000, 0.5), 1.0)


def brake(rating: float) -> float:
    """Return S_Br, 0 from 1300: makes players below 1300 fall slower who score less than expected."""
    # Far more than E may be, long before the exponential is too large for a float.
    return math.expm1(min(max(BRAKE_BELOW - rating, 0.0) / 150, 100.0))
