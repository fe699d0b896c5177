"""The best kernel of a space."""

from wsjax.search.answers import Answer, Chosen
from wsjax.search.optimization import Request, one_problem, optimize, request

__all__ = ["Answer", "Chosen", "Request", "one_problem", "optimize", "request"]
