"""What the sheet and its curve say, in English and French: labels, why K is what it is, dates and numbers.

Neither the locale of the process nor a translation of sentences made elsewhere has a part in it.
"""

import re
from collections.abc import Sequence
from datetime import date

from petard_worker.ratings.calculator import KChoice, KFactor, KReason

MINUS = "\N{MINUS SIGN}"
FIRST = re.compile(r"(?<=\b1)(er)\b")

MONTHS = {
    "en": (
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ),
    "fr": (
        "janvier",
        "février",
        "mars",
        "avril",
        "mai",
        "juin",
        "juillet",
        "août",
        "septembre",
        "octobre",
        "novembre",
        "décembre",
    ),
}

WORDS = {
    "en": {
        "title": "Elo rating of one game",
        "player": "Player",
        "opponent": "Opponent",
        "rating": "Rating R",
        "opponent_rating": "Opponent's rating Ro",
        "difference": "Difference D = R − Ro",
        "result": "Result",
        "win": "win, S = 1",
        "draw": "draw, S = 0.5",
        "loss": "loss, S = 0",
        "k": "Factor K",
        "games": "Games rated before",
        "age": "Age",
        "results": "Results",
        "by_logistic": "Logistic (Elo)",
        "by_fide": "FIDE table 8.1.2",
        "expected": "Expected score",
        "change": "Change",
        "new": "New rating",
        "performance": "Performance of this game",
        "curve": "Expected score by rating difference",
        "curve_difference": "Rating difference",
        "curve_desc": "The logistic curve of Elo and the steps of FIDE's table 8.1.2, for differences from"
        " {low} to {high}. Equal ratings expect {half}; +400 expects {logistic} by the curve and {fide} by"
        " the table.",
        "curve_at": "At a difference of {difference}: {logistic} by the curve, {fide} by the table.",
        "point": "{name}: D = {difference}, {score}",
        "beyond": "D = {difference} lies beyond the axis: its point is at the edge.",
        "infinite": "none (infinite)",
        "formulas": "Formulas",
        "table": "PD: from table 8.1.2; beyond ±400, D counts as ±400 unless R is 2650 or more (8.3.1)",
        "dp": "Rp = Ro + dp; dp: from table 8.1.1, win +800, draw 0, loss −800",
        "rounding": "FIDE rounds the sum of a rating period, not each game (8.3.4).",
        "sources": "Sources: A. E. Elo, The Rating of Chessplayers, Past and Present (1978); FIDE Handbook"
        " B.02, FIDE Rating Regulations effective from 1 March 2024, amended 1 October 2025.",
    },
    "fr": {
        "title": "Classement Elo d’une partie",
        "player": "Joueur",
        "opponent": "Adversaire",
        "rating": "Classement R",
        "opponent_rating": "Classement adverse Ro",
        "difference": "Écart D = R − Ro",
        "result": "Résultat",
        "win": "victoire, S = 1",
        "draw": "nulle, S = 0,5",
        "loss": "défaite, S = 0",
        "k": "Coefficient K",
        "games": "Parties classées avant",
        "age": "Âge",
        "results": "Résultats",
        "by_logistic": "Logistique (Elo)",
        "by_fide": "Table FIDE 8.1.2",
        "expected": "Score attendu",
        "change": "Variation",
        "new": "Nouveau classement",
        "performance": "Performance de la partie",
        "curve": "Score attendu selon l’écart de classement",
        "curve_difference": "Écart de classement",
        "curve_desc": "La courbe logistique d’Elo et les paliers de la table 8.1.2 de la FIDE, pour des"
        " écarts de {low} à {high}. À égalité, le score attendu est {half} ; à +400, {logistic} selon la"
        " courbe et {fide} selon la table.",
        "curve_at": "Pour un écart de {difference} : {logistic} selon la courbe, {fide} selon la table.",
        "point": "{name} : D = {difference}, {score}",
        "beyond": "D = {difference} sort de l’axe : son point est au bord.",
        "infinite": "aucune (infinie)",
        "formulas": "Formules",
        "table": "PD : selon la table 8.1.2 ; au-delà de ±400, D compte ±400, sauf si R atteint 2650 (8.3.1)",
        "dp": "Rp = Ro + dp ; dp : selon la table 8.1.1, victoire +800, nulle 0, défaite −800",
        "rounding": "La FIDE arrondit la somme d’une période, pas chaque partie (8.3.4).",
        "sources": "Sources : A. E. Elo, The Rating of Chessplayers, Past and Present (1978) ; Manuel de la"
        " FIDE B.02, règlement du classement en vigueur depuis le 1er mars 2024, modifié le 1er octobre"
        " 2025.",
    },
}

K_REASONS = {
    "en": {
        KReason.GIVEN: "as given",
        KReason.FIDE_NEW: "fewer than 30 games: FIDE 8.3.3",
        KReason.FIDE_YOUNG: "to the end of the year of the 18th birthday, below 2300: FIDE 8.3.3",
        KReason.FIDE_USUAL: "30 games or more, never rated 2400: FIDE 8.3.3",
        KReason.FIDE_MASTER: "rated 2400 or more, now or before: FIDE 8.3.3",
        KReason.CALCULATOR_MASTER: "rated 2400 or more: many online calculators, not FIDE",
        KReason.CALCULATOR_STRONG: "rated 2100 or more, below 2400: many online calculators, not FIDE",
        KReason.CALCULATOR_USUAL: "rated below 2100: many online calculators, not FIDE",
    },
    "fr": {
        KReason.GIVEN: "indiqué",
        KReason.FIDE_NEW: "moins de 30 parties : FIDE 8.3.3",
        KReason.FIDE_YOUNG: "jusqu’à la fin de l’année des 18 ans, sous 2300 : FIDE 8.3.3",
        KReason.FIDE_USUAL: "30 parties ou plus, jamais classé 2400 : FIDE 8.3.3",
        KReason.FIDE_MASTER: "classé 2400 ou plus, à présent ou auparavant : FIDE 8.3.3",
        KReason.CALCULATOR_MASTER: "classé 2400 ou plus : de nombreux calculateurs en ligne, pas la FIDE",
        KReason.CALCULATOR_STRONG: (
            "classé 2100 ou plus, sous 2400 : de nombreux calculateurs en ligne, pas la FIDE"
        ),
        KReason.CALCULATOR_USUAL: "classé sous 2100 : de nombreux calculateurs en ligne, pas la FIDE",
    },
}
"""Why K is what it is, by the rule that gave it."""

OTHER_K_REASONS = {
    "en": {
        "limited": "not {unlimited}: {games} games in one period, at most 700 in all: FIDE 8.3.3",
        "assumed": "{reason}; number of games not given",
    },
    "fr": {
        "limited": "non {unlimited} : {games} parties dans la période, 700 au plus en tout : FIDE 8.3.3",
        "assumed": "{reason} ; nombre de parties non indiqué",
    },
}


def k_reason(factor: KFactor, choice: KChoice, lang: str) -> str:
    """Return why K is what it is, and what was assumed to find it."""
    other = OTHER_K_REASONS[lang]
    reason = K_REASONS[lang][factor.reason]
    if factor.unlimited is not None:
        reason = other["limited"].format(unlimited=plain(factor.unlimited, lang), games=factor.together)
    return other["assumed"].format(reason=reason) if choice.assumed else reason


def date_text(day: date, lang: str) -> str:
    """Return the date in words; not by the locale of the process."""
    number_of_day = "1er" if lang == "fr" and day.day == 1 else str(day.day)
    return f"{number_of_day} {MONTHS[lang][day.month - 1]} {day.year}"


def points(value: float, lang: str, *, signed: bool = False) -> str:
    """Return rating points: whole where they are whole, else with two decimals."""
    return number(value, lang, 0 if value == round(value) else 2, signed=signed)


def same_points(values: Sequence[float], lang: str, *, signed: bool = False) -> list[str]:
    """Return rating points that stand side by side: whole where all are whole, else all with two decimals."""
    digits = 0 if all(round(value, 2) == round(value) for value in values) else 2
    return [number(value, lang, digits, signed=signed) for value in values]


def score(share: float, lang: str, digits: int) -> str:
    """Return an expected score, 0 to 1; what is not quite 0 or 1 does not look it."""
    least = 10.0**-digits
    if 0 < share < least:
        return f"< {number(least, lang, digits)}"
    if 1 - least < share < 1:
        return f"> {number(1 - least, lang, digits)}"
    return number(share, lang, digits)


def percent(share: float, lang: str) -> str:
    """Return an expected score in per cent, as the commands show it."""
    if 0 < share < 0.0001:
        return f"< {number(0.01, lang, 2)} %"
    if 0.9999 < share < 1:
        return f"> {number(99.99, lang, 2)} %"
    return f"{number(100 * share, lang, 2)} %"


def raised_parts(text: str) -> list[tuple[str, bool]]:
    """Return a text in pieces, of which the true ones are raised: the letters of the French 1er."""
    return [(part, place % 2 == 1) for place, part in enumerate(FIRST.split(text)) if part]


def plain(value: float, lang: str) -> str:
    """Return a number with as many decimals as it has, four at most."""
    text = number(value, lang, 4)
    return text.rstrip("0").rstrip(".,")


def number(value: float, lang: str, digits: int = 0, *, signed: bool = False) -> str:
    """Return the number as people of that language write it, with a true minus sign and never as −0."""
    text = f"{value:.{digits}f}"
    if not text.strip("-0."):
        text = text.removeprefix("-")
    sign = "+" if signed and value > 0 and text.strip("0.") else ""
    text = sign + text.replace("-", MINUS)
    return text.replace(".", ",") if lang == "fr" else text
