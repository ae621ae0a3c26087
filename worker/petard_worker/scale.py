"""How ratings are mapped to what people see: numbers only, whichever pool they are of."""

from typing import NamedTuple


class Scale(NamedTuple):
    """The lowest rating is shown as `low`, a point as `factor` points; below 0 it turns the order round."""

    lowest: float
    low: float
    factor: float

    def shown(self, rating: float) -> float:
        """Return what is seen of a rating."""
        return self.low + (rating - self.lowest) * self.factor

    def rating(self, shown: float) -> float:
        """Return the rating that is seen as this one."""
        return self.lowest + (shown - self.low) / self.factor


AS_IT_IS = Scale(0.0, 0.0, 1.0)
