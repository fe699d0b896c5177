"""The few kernels to ship."""

from wsjax.portfolio.choices import Choice, slower_pct
from wsjax.portfolio.choices import Measured as MeasuredChoice
from wsjax.portfolio.choosing import choose
from wsjax.portfolio.loss_plot import Point, loss_svg

__all__ = ["Choice", "MeasuredChoice", "Point", "choose", "loss_svg", "slower_pct"]
