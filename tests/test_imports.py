"""Who imports whom, and what is not imported until it is needed."""

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import wsjax

PACKAGE = Path(wsjax.__file__).parent
ORDER = (
    "errors",
    "deadlines",
    "kept",
    "schema",
    "hardware",
    "model",
    "tables",
    "spec",
    "engine",
    "importers",
    "predictions",
    "triton",
    "sweeps",
    "fit",
    "search",
    "portfolio",
    "changes",
    "measuring",
    "timelines",
    "views",
    "cli",
)
"""Each package imports only those above it, by the names of its face (its `__init__`)."""
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def _package(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def _imports(path: Path) -> list[tuple[str, str]]:
    """What a file imports of wsjax, in functions too: (module below `wsjax`, name)."""
    return [
        (str(node.module).removeprefix("wsjax").removeprefix("."), alias.name)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "wsjax"
        for alias in node.names
    ]


def test_every_package_has_its_place():
    assert {_package(path) for path in FILES} == set(ORDER)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_upwards_and_end_at_faces(path):
    own = _package(path)
    above = ORDER[: ORDER.index(own)]
    for module, name in _imports(path):
        package, _, rest = (module or name).partition(".")
        if package in (own, "__version__"):
            continue
        assert package in above, f"{package} is not above {own}"
        assert not rest, f"{module} lies behind the face of {package}"
        if module:
            names = importlib.import_module(f"wsjax.{package}").__dict__.get("__all__", (name,))
            assert name in names, f"{package} does not offer {name}"


def test_only_tables_import_pyarrow():
    users = {
        _package(path)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and "pyarrow" in [getattr(node, "module", None), *(alias.name for alias in node.names)]
        and not _typing_only(path, node)
    }
    assert users == {"tables"}


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
