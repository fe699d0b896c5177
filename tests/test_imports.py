"""Who imports whom, and what is not imported until it is needed."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import wsjax

PACKAGE = Path(wsjax.__file__).parent
LAYERS = (
    "errors",
    "finite",
    "space",
    "where",
    "sieves",
    "limits",
    "parameters",
    "hardware",
    "intervals",
    "axes",
    "overrides",
    "output",
    "spec",
    "arithmetic",
    "events",
    "closed",
    "periodic",
    "raster",
    "traffic",
    "durations",
    "bounds",
    "inputs",
    "rows",
    "programs",
    "queues",
    "sources",
    "families",
    "board",
    "brackets",
    "winners",
    "batch",
    "files",
    "csv_files",
    "tables",
    "frame",
    "single",
    "spaces",
    "objectives",
    "constraints",
    "power",
    "deadlines",
    "figures",
    "candidates",
    "pareto",
    "decide",
    "encoding",
    "answers",
    "optimization",
    "set_tables",
    "set_heuristics",
    "set_bounds",
    "set_decide",
    "set_search",
    "kernel_sets",
    "set_conflicts",
    "importers",
    "intervals",
    "measured",
    "metrics",
    "fit",
    "identify",
    "priors",
    "rounds",
    "validation",
    "calibration",
    "ablation",
    "traces",
    "replay",
    "reports",
    "predictions",
    "workloads",
    "time_tables",
    "choices",
    "kernel_lists",
    "choice_frames",
    "choosing",
    "loss_plot",
    "best",
    "stores",
    "dataset",
    "trials",
    "blocks",
    "given_columns",
    "distributions",
    "histograms",
    "shards",
    "layout",
    "clusters",
    "engines",
    "sweeps",
    "results",
    "pages",
    "steps",
    "critical",
    "stretch",
    "timeline",
    "slices",
    "scene",
    "palette",
    "chrome",
    "gantt",
    "gantt_page",
    "comparison",
    "gantt_grid",
    "variants",
    "resources",
    "explaining",
    "terminal",
    "console",
    "sweep_console",
    "import_console",
    "report_console",
    "trace_view",
    "trace_tables",
    "trace_console",
    "fit_console",
    "explain_console",
    "optimize_console",
    "choose_console",
    "options",
    "verbs_model",
    "verbs_measured",
    "verbs_search",
    "verbs_views",
    "compiled",
    "cli",
)
"""Each module imports only those above it; a package counts as one."""


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


FILES = [
    path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or path.stem[0] != "_"
]


def _imports(path: Path) -> set[str]:
    """The modules of wsjax that a file imports, in functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [str(node.module)]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("wsjax.")}
    return found & set(LAYERS)


def test_every_module_has_its_place():
    assert {_module(path) for path in FILES} <= set(LAYERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_upwards(path):
    module = _module(path)
    assert _imports(path) - {module} <= set(LAYERS[: LAYERS.index(module)])


def test_only_tables_and_stores_import_pyarrow():
    users = {
        path.name
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and "pyarrow" in [getattr(node, "module", None), *(alias.name for alias in node.names)]
        and not _typing_only(path, node)
    }
    assert users == {"tables.py", "csv_files.py", "stores.py"}


def _typing_only(path: Path, node: ast.stmt) -> bool:
    """Whether an import stands under `if TYPE_CHECKING:`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    blocks = [
        n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"
    ]
    return any(child.lineno <= node.lineno <= (child.end_lineno or 0) for child in blocks)


HEAVY = {"jax", "pandas", "pyarrow", "numpy", "z3", "cattrs"}
QUICK = {
    "import": "import wsjax",
    "help": "from wsjax.cli import main; main(['--help'])",
    "verb help": "from wsjax.cli import main; main(['predict', '--help'])",
    "mistyped": "from wsjax.cli import main; main(['predikt'])",
}


@pytest.mark.parametrize("code", QUICK.values(), ids=QUICK)
def test_heavy_modules_stay_out(code):
    report = (
        "import atexit, json, sys, time; atexit.register(lambda: "
        "print(json.dumps([time.process_time(), sorted(sys.modules)])));"
    )
    run = subprocess.run(
        [sys.executable, "-c", f"{report} {code}"], capture_output=True, text=True, check=True
    )
    seconds, modules = json.loads(run.stdout.splitlines()[-1])
    assert not HEAVY & set(modules)
    assert seconds < 0.5


def test_public_names_come_when_asked_for():
    import wsjax.cli
    import wsjax.predictions
    import wsjax.sweeps  # a module must not take a public function's place

    for name in wsjax.__all__:
        assert callable(getattr(wsjax, name))
        assert name in dir(wsjax)
    with pytest.raises(AttributeError, match="predikt"):
        wsjax.predikt  # noqa: B018


def test_nothing_reaches_past_the_face_of_importers():
    inside = PACKAGE / "importers"
    reached = [
        f"{path.name}: {node.module}"
        for path in FILES
        if inside not in path.parents
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("wsjax.importers.")
    ]
    assert not reached
