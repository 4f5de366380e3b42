"""The built wheel, installed into an environment of its own, does the main job from another folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from analyzer import grammar_store

ROOT = Path(__file__).resolve().parent.parent
INCIDENT = ROOT / "tests" / "fixtures" / "incidents" / "four-cards-drop-out"
CAUSE = "memory.comm-buffers-over-capacity"

pytestmark = pytest.mark.wheel

LOAD_ALL_COMPILED = """
import lark
def built(self, *args, **kwargs): raise AssertionError("a grammar was compiled")
lark.Lark.__init__ = built
from analyzer import grammar_store
for name in grammar_store.names():
    for rule in grammar_store.start_rules(grammar_store.grammar_folder() / f"{name}.lark"):
        grammar_store.load(name, rule)
    print(name)
"""


def call(*command: str | Path, cwd: Path, expect: int = 0) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == expect, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    call(*pip, "--wheel-dir", folder, ROOT, cwd=folder)
    [path] = folder.glob("crashcart-*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs folder of a clean environment that holds the wheel and what it needs, nothing else."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(folder, with_pip=True, symlinks=True)
    programs = folder / "bin"
    call(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    return programs


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder far from the checkout with the raw files of the incident, without its label."""
    shutil.copytree(INCIDENT, tmp_path / "logs", ignore=shutil.ignore_patterns("case.yaml", "*.expected.json"))
    return tmp_path


def test_the_wheel_holds_the_data(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    sources = {path.name for path in (ROOT / "grammars").glob("*.lark")}
    rules = {path.relative_to(ROOT / "rules").as_posix() for path in (ROOT / "rules").rglob("*.yaml")}
    code = {path.relative_to(ROOT).as_posix() for path in (ROOT / "analyzer").rglob("*.py")}
    assert sources and code <= inside
    assert {f"analyzer/_data/grammars/{name}" for name in sources} <= inside
    assert {f"analyzer/_data/compiled/{name}.bin" for name in grammar_store.names()} <= inside
    assert {f"analyzer/_data/rules/{name}" for name in rules} <= inside
    assert not [name for name in inside if not name.startswith(("analyzer/", "crashcart-"))]
    assert [name for name in inside if name.endswith("licenses/LICENSE")]


def test_the_compiled_grammars_are_used(installed: Path, tmp_path: Path) -> None:
    loaded = call(installed / "python", "-c", LOAD_ALL_COMPILED, cwd=tmp_path)
    assert loaded.split() == grammar_store.names()


def test_an_incident_is_explained(installed: Path, elsewhere: Path) -> None:
    printed = call(installed / "crashcart", "analyze", "--format", "json", "logs", cwd=elsewhere, expect=1)
    report = json.loads(printed)
    assert report["verdict"]["cause"] == CAUSE
    assert report["findings"][0]["cause"] == CAUSE


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_report_can_be_written(installed: Path, elsewhere: Path, form: str) -> None:
    call(installed / "crashcart", "analyze", "--format", form, "-o", "report", "logs", cwd=elsewhere, expect=1)
    assert CAUSE in (elsewhere / "report").read_text(encoding="utf-8")
