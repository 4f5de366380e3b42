"""The command line. Libraries that cost start-up time are imported inside the commands."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from analyzer import __version__
from analyzer.errors import (
    EXIT_BUG,
    EXIT_FINDINGS,
    EXIT_INTERRUPTED,
    EXIT_NOT_UNDERSTOOD,
    EXIT_OK,
    CrashcartError,
)

if TYPE_CHECKING:
    from analyzer.model import Report

FORMATS = ("text", "json", "markdown", "html")
_LEVELS = {"error": 2, "warning": 1, "never": 9}
_SEVERITY = {"error": 2, "warning": 1, "info": 0}


class _Group(click.Group):
    """Turns faults into one line and an exit code; a bug leaves its traceback in a file."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except CrashcartError as error:
            _say(f"crashcart: {error}")
            if error.help_text:
                _say(error.help_text)
            sys.exit(error.exit_code)
        except (KeyboardInterrupt, click.Abort):
            sys.exit(EXIT_INTERRUPTED)
        except (click.exceptions.Exit, click.ClickException):
            raise
        except BrokenPipeError:
            sys.stderr.close()
            sys.exit(EXIT_OK)
        except Exception:  # noqa: BLE001 - the one handler of bugs
            _bug()


def _say(text: str) -> None:
    from analyzer.report.escape import visible

    click.echo(visible(text), err=True)


def _bug() -> NoReturn:
    import tempfile

    with tempfile.NamedTemporaryFile(
        "w", prefix="crashcart-bug-", suffix=".txt", delete=False, encoding="utf-8"
    ) as report:
        report.write(f"crashcart {__version__}, Python {sys.version}\n\n{traceback.format_exc()}")
    click.echo(f"crashcart: a fault of crashcart itself; what happened is in {report.name}", err=True)
    sys.exit(EXIT_BUG)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="crashcart")
def main() -> None:
    """Finds the root cause of a GPU job that crashed, hangs or crawls."""


@main.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format", "fmt", type=click.Choice(FORMATS), default="text", show_default=True, help="Form of the report."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to a file.")
@click.option("--baseline", multiple=True, metavar="PATH", help="An earlier good run to compare with.")
@click.option("--rules", "rules", multiple=True, metavar="DIR", help="Folder of rules of your own.")
@click.option(
    "--fail-on",
    type=click.Choice(tuple(_LEVELS)),
    default="error",
    show_default=True,
    help="Exit with 1 from this severity on.",
)
@click.option("--jobs", type=click.IntRange(0), default=0, help="Processes for large inputs (0: one per core).")
def analyze(
    paths: tuple[str, ...],
    fmt: str,
    output: Path | None,
    baseline: tuple[str, ...],
    rules: tuple[str, ...],
    fail_on: str,
    jobs: int,
) -> None:
    """Read logs, dumps, folders and archives and say what the root cause is.

    PATH is a file, a folder, an archive (.gz .zst .zip .tar .tgz) or - for standard input.

    \b
    Exit codes: 0 nothing at or above --fail-on, 1 findings, 2 usage,
    3 no input was understood, 70 a fault of crashcart itself.
    """
    from analyzer.analysis import Options
    from analyzer.analysis import analyze as run

    with _Progress() as progress:
        report = run(Options(paths, baseline, rules, jobs), progress)
    _write(report, fmt, output)
    sys.exit(_exit_code(report, fail_on))


class _Progress:
    """A progress line on a terminal, for work that takes longer than a moment."""

    def __enter__(self) -> Any:
        self._status: Any = None
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("reading")
            self._bytes = 0
            self._status.start()
        return self._done if self._status else None

    def _done(self, job: Any) -> None:
        from rich.markup import escape

        from analyzer.report.escape import visible

        self._bytes += job.size
        self._status.update(f"read {self._bytes / 1e6:,.0f} MB, last {escape(visible(job.name))}")

    def __exit__(self, *exc: object) -> None:
        if self._status:
            self._status.stop()


def _write(report: Report, fmt: str, output: Path | None) -> None:
    from analyzer.report import render_to_string

    if output is None and fmt == "text" and sys.stdout.isatty():
        from rich.console import Console

        from analyzer.report import text

        text.render(report, Console())
        return
    rendered = render_to_string(report, fmt)
    rendered = rendered if rendered.endswith("\n") else rendered + "\n"
    if output is None:
        sys.stdout.buffer.write(rendered.encode("utf-8", "replace"))
        sys.stdout.flush()
        return
    try:
        output.write_text(rendered, encoding="utf-8")
    except OSError as error:
        raise CrashcartError(f"{output}: cannot be written: {error.strerror}") from None


def _exit_code(report: Report, fail_on: str) -> int:
    worst = max((_SEVERITY[f.severity] for f in report.findings), default=0)
    if worst >= _LEVELS[fail_on]:
        return EXIT_FINDINGS
    if not any(entry.recognised_lines for entry in report.inputs):
        _say("crashcart: no input was understood; 'crashcart formats' lists what can be read")
        return EXIT_NOT_UNDERSTOOD
    return EXIT_OK


@main.command()
@click.option("--format", "fmt", type=click.Choice(("text", "json")), default="text", show_default=True)
def formats(fmt: str) -> None:
    """List the input formats and the command that prints each."""
    from analyzer.parsers import DOCUMENTS
    from analyzer.parsers import FORMATS as LINES

    names = ("name", "title", "versions", "command")
    entries = [{name: getattr(entry, name) for name in names} for entry in sorted((*LINES, *DOCUMENTS), key=_name)]
    if fmt == "json":
        import json

        click.echo(json.dumps({"schema": "crashcart.formats/1", "formats": entries}, indent=1))
        return
    for entry in entries:
        click.echo("{name}\n    {title}\n    seen: {versions}\n    from: {command}".format(**entry))


def _name(entry: Any) -> str:
    return str(entry.name)


@main.command()
@click.argument("words", nargs=-1, required=True, metavar="ID | xid N | sxid N | cuda N | nccl MESSAGE")
def explain(words: tuple[str, ...]) -> None:
    """Say what a cause, an Xid, a CUDA error or a message of NCCL means and what to do."""
    from analyzer.explain import explain as text_of
    from analyzer.report.escape import visible

    click.echo(visible(text_of(words)))


@main.group()
def rules() -> None:
    """List, show, test and start rules."""


@rules.command("list")
@click.option("--rules", "folders", multiple=True, metavar="DIR", help="Folder of rules of your own.")
def list_rules(folders: tuple[str, ...]) -> None:
    """Every rule: id, role, severity and title."""
    from analyzer.analysis import shipped_and_own_rules

    for rule in shipped_and_own_rules(folders):
        click.echo(f"{rule.id:<42} {rule.role:<11} {rule.severity:<8} {rule.title}")


@rules.command("show")
@click.argument("rule_id", metavar="ID")
@click.option("--rows", metavar="PATH", multiple=True, help="Show the rows that the query finds in these inputs.")
@click.option("--rules", "folders", multiple=True, metavar="DIR", help="Folder of rules of your own.")
def show_rule(rule_id: str, rows: tuple[str, ...], folders: tuple[str, ...]) -> None:
    """One rule: what it needs, its query and its advice; with --rows what it finds in an input."""
    from difflib import get_close_matches

    from analyzer.analysis import rows_of, shipped_and_own_rules
    from analyzer.engine import show
    from analyzer.report.escape import visible

    known = {rule.id: rule for rule in shipped_and_own_rules(folders)}
    if rule_id not in known:
        close = get_close_matches(rule_id, known, 1)
        raise CrashcartError(
            f"no rule {rule_id}{f' (did you mean {close[0]}?)' if close else ''}", "crashcart rules list"
        )
    rule = known[rule_id]
    click.echo(visible(show(rule, rows_of(rule, rows) if rows else None)))


@rules.command("test")
@click.argument("folders", nargs=-1, metavar="[DIR]...")
def run_rule_tests(folders: tuple[str, ...]) -> None:
    """Run the tests inside the rule files, with variations; without DIR those of the shipped rules."""
    from analyzer.analysis import catalogue
    from analyzer.engine import load_rules, test_rules
    from analyzer.grammar_store import rules_folder

    own = [Path(folder) for folder in folders]
    found = load_rules(own) if own else load_rules([rules_folder()], catalogue())
    failures = test_rules(found)
    for failure in failures:
        click.echo(str(failure))
    tests = sum(len(rule.tests) for rule in found)
    click.echo(f"{len(found)} rules, {tests} tests, {len(failures)} failures")
    sys.exit(EXIT_FINDINGS if failures else EXIT_OK)


@rules.command("new")
@click.argument("cause")
def new_rule(cause: str) -> None:
    """Print a rule file to start from, for a cause such as memory.fragmentation."""
    from analyzer.engine import skeleton

    click.echo(skeleton(cause))
