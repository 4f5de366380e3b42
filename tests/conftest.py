"""What several test modules share: where things lie, and what may be missing on a machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of captures and labelled incidents, which is no part of the repository."""
    folder = Path(os.environ.get("CRASHCART_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no captures in {folder}")
    return folder


@pytest.fixture(scope="session")
def browser() -> str:
    """The path of a headless-capable browser; without one the test is skipped, under CI it fails."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    if os.environ.get("CI") == "true":
        pytest.fail("browser tests are mandatory under CI=true, and neither chromium nor google-chrome is installed")
    pytest.skip("no chromium or google-chrome")
