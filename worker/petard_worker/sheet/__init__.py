"""The one-page PDF of the Elo calculator, its curve as SVG, and names in every script."""
