"""The generated pages are those that the sources give now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    subprocess.run([sys.executable, str(ROOT / "scripts" / "make_docs.py"), str(folder)], cwd=ROOT, check=True)
    return folder


@pytest.mark.parametrize("name", ["evidence.md", "formats.md", "rules.md"])
def test_page_is_current(fresh: Path, name: str) -> None:
    assert (fresh / name).read_text(encoding="utf-8") == (ROOT / "docs" / name).read_text(encoding="utf-8"), (
        "run: python scripts/make_docs.py"
    )
