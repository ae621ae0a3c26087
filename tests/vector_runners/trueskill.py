"""TrueSkill: none of our systems, so that every case of it is left out."""

import json
from pathlib import Path

from vector_runners.near import Runner

VECTORS = Path(__file__).parents[3] / "shared" / "data" / "vectors.json"
REASON = "TrueSkill is in the vectors for comparison only; no system of ours is TrueSkill"

RUNNERS: dict[str, Runner] = {}
LEFT_OUT: dict[str, str] = {
    case["id"]: REASON
    for case in (json.loads(VECTORS.read_text()) if VECTORS.exists() else [])
    if case["system"] == "trueskill"
}
