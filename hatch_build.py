"""Build hook: compiles the grammars and lays them into the wheel beside the grammars' sources and the rules.

A wheel gets ``analyzer/_data/{grammars,rules,compiled}``. An editable install reads both folders from the checkout,
so for it the hook only fills the checkout's own cache of compiled grammars.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileGrammars(BuildHookInterface[Any]):
    """The only hook of the project, found by hatchling through ``pyproject.toml``."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before the build; ``version`` is standard or editable."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        store = _grammar_store(root)
        grammars = root / "grammars"
        if version == "editable":
            store.compile_all(root / ".build" / "grammars", grammars)
            return
        compiled = root / ".build" / "wheel"
        shutil.rmtree(compiled, ignore_errors=True)
        store.compile_all(compiled, grammars)
        files = [(path, f"compiled/{path.name}") for path in sorted(compiled.glob("*.bin"))]
        files += [(path, f"grammars/{path.name}") for path in sorted(grammars.glob("*.lark"))]
        rules = root / "rules"
        kept = [*sorted(rules.rglob("*.yaml")), rules / "causes.txt"]
        files += [(path, f"rules/{path.relative_to(rules).as_posix()}") for path in kept]
        for path, inside in files:
            build_data["force_include"][str(path)] = f"analyzer/_data/{inside}"


def _grammar_store(root: Path) -> ModuleType:
    """``analyzer/grammar_store.py`` by its path: the package is not installed yet while it is built."""
    spec = importlib.util.spec_from_file_location("grammar_store", root / "analyzer" / "grammar_store.py")
    if spec is None or spec.loader is None:
        raise RuntimeError("analyzer/grammar_store.py cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
