"""One configuration -> its time: durations, and the event recurrences that they feed."""

from wsjax.model.arithmetic import divides
from wsjax.model.bounds import RELAXED, Family, family_bound_us
from wsjax.model.closed import closed as closed_form
from wsjax.model.closed import exchange_us, isolated, lower_bound, slopes
from wsjax.model.durations import Machine, ctas_per_sm, kernel
from wsjax.model.events import (
    COOPERATIVE,
    MAX_STAGES,
    PERSISTENT,
    PINGPONG,
    SERIAL,
    Events,
    Outcome,
    Pipeline,
    isolate,
    played,
    simulate_queue,
    start_carry,
)
from wsjax.model.periodic import solve
from wsjax.model.raster import raster as raster_of

__all__ = [
    "COOPERATIVE",
    "MAX_STAGES",
    "PERSISTENT",
    "PINGPONG",
    "RELAXED",
    "SERIAL",
    "Events",
    "Family",
    "Machine",
    "Outcome",
    "Pipeline",
    "closed_form",
    "ctas_per_sm",
    "divides",
    "exchange_us",
    "family_bound_us",
    "isolate",
    "isolated",
    "kernel",
    "lower_bound",
    "played",
    "raster_of",
    "simulate_queue",
    "slopes",
    "solve",
    "start_carry",
]
