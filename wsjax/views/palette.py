"""Colours of what happens in a kernel, after Okabe and Ito: all can tell them apart."""

LIGHT = {
    "launch": "#9aa3ad",
    "wave": "#b9c2cc",
    "cold": "#e8d5c4",
    "wait": "#e3e7eb",
    "queue": "#a9d3ee",
    "load": "#0072b2",
    "compute": "#009e73",
    "epilogue": "#cc79a7",
    "path": "#d55e00",
    "ink": "#1c2128",
    "soft": "#59636e",
    "line": "#d5dbe1",
}
