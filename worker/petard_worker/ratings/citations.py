"""What do the formulas come from? The sources by system, as entries of a list of references."""

from typing import NamedTuple


class Entry(NamedTuple):
    """A text and its part in italics."""

    text: str
    italic: str


ELO_TITLE = "The Rating of Chessplayers, Past and Present"
HANDBOOK = "https://handbook.fide.com/chapter/B022024"
GLICKO_DOI = "https://doi.org/10.1111/1467-9876.00159"
GLICKO2_DOI = "https://doi.org/10.1080/02664760120059219"
WENG_LIN_URL = "https://jmlr.org/papers/v12/weng11a.html"
SERIES_C = "Journal of the Royal Statistical Society: Series C (Applied Statistics)"

REFERENCES: dict[str, dict[str, Entry]] = {
    "elo": {
        "apa": Entry(
            "Elo, A. E. (1978). The rating of chessplayers, past and present. Arco Publishing.",
            "The rating of chessplayers, past and present",
        ),
        "mla": Entry(f"Elo, Arpad E. {ELO_TITLE}. Arco Publishing, 1978.", ELO_TITLE),
    },
    "fide": {
        "apa": Entry(
            "International Chess Federation. (2024). FIDE rating regulations effective from 1 March 2024"
            f" (FIDE Handbook B.02, amended 1 October 2025). {HANDBOOK}",
            "FIDE rating regulations effective from 1 March 2024",
        ),
        "mla": Entry(
            "International Chess Federation. “FIDE Rating Regulations Effective from 1 March 2024.”"
            " FIDE Handbook, B.02, 2024, amended 1 Oct. 2025,"
            f" {HANDBOOK.removeprefix('https://')}.",
            "FIDE Handbook",
        ),
    },
    "glicko": {
        "apa": Entry(
            "Glickman, M. E. (1999). Parameter estimation in large dynamic paired comparison experiments."
            f" {SERIES_C}, 48(3), 377–394. {GLICKO_DOI}",
            f"{SERIES_C}, 48",
        ),
        "mla": Entry(
            "Glickman, Mark E. “Parameter Estimation in Large Dynamic Paired Comparison Experiments.”"
            f" {SERIES_C}, vol. 48, no. 3, 1999, pp. 377–94, {GLICKO_DOI}.",
            SERIES_C,
        ),
    },
    "glicko2": {
        "apa": Entry(
            "Glickman, M. E. (2001). Dynamic paired comparison models with stochastic variances."
            f" Journal of Applied Statistics, 28(6), 673–689. {GLICKO2_DOI}",
            "Journal of Applied Statistics, 28",
        ),
        "mla": Entry(
            "Glickman, Mark E. “Dynamic Paired Comparison Models with Stochastic Variances.”"
            f" Journal of Applied Statistics, vol. 28, no. 6, 2001, pp. 673–89, {GLICKO2_DOI}.",
            "Journal of Applied Statistics",
        ),
    },
    "weng_lin": {
        "apa": Entry(
            "Weng, R. C., & Lin, C.-J. (2011). A Bayesian approximation method for online ranking."
            f" Journal of Machine Learning Research, 12, 267–300. {WENG_LIN_URL}",
            "Journal of Machine Learning Research, 12",
        ),
        "mla": Entry(
            "Weng, Ruby C., and Chih-Jen Lin. “A Bayesian Approximation Method for Online Ranking.”"
            " Journal of Machine Learning Research, vol. 12, 2011, pp. 267–300,"
            f" {WENG_LIN_URL.removeprefix('https://')}.",
            "Journal of Machine Learning Research",
        ),
    },
}
"""By system and style: APA 7 and MLA 9."""


def apa(system: str) -> str:
    """Return the source of a system that is among the references, in APA 7."""
    return REFERENCES[system]["apa"].text
