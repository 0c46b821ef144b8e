"""The command `bench`: a verb's module is imported when it is called; errors become text and exit codes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import version

import typer

from harness.errors import BenchError, UsageError, close_to

VERBS = {
    "run": ("bench.run", "Measure models, eager against compiled."),
    "list": ("bench.list", "Show suites, models, devices or runs."),
    "plan": ("bench.plan", "Show what a run would do, without doing it."),
    "compare": ("bench.compare", "What changed between two runs?"),
    "doctor": ("bench.doctor", "Is this host fit to measure?"),
    "serve": ("bench.serve", "Serve the dashboard."),
    "push": ("bench.push", "Send journals to a server."),
    "token": ("bench.token", "Make, list and revoke keys to a server's API."),
    "import": ("bench.data", "Load journals, or results of others, into the database."),
    "export": ("bench.export", "Write a run as files that others read."),
    "db": ("bench.database", "Upgrade, check, measure, prune or back up the database."),
}
"""Verb -> the module with its Typer `app`, and what it does."""

INTERRUPTED = 130


def main(args: Sequence[str] | None = None) -> None:
    """Run one verb and leave with its exit code. `docs/architecture.md` says what each code means."""
    sys.exit(run(sys.argv[1:] if args is None else args))


def run(args: Sequence[str]) -> int:
    """Run one verb and return its exit code; a user's mistake is one sentence on stderr."""
    try:
        return _dispatch(args)
    except (BenchError, typer.TyperException) as error:
        text = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        print(f"bench: {text}", file=sys.stderr)
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        print("bench: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # a reader such as `head` has left; nobody listens
        return 1


def _dispatch(args: Sequence[str]) -> int:
    if not args or args[0] in ("--help", "-h", "help"):
        print(_help())
        return 0 if args else 2
    if args[0] == "--version":
        print(f"bench {version('compile-bench')}")
        return 0
    verb, rest = args[0], list(args[1:])
    if verb not in VERBS:
        raise UsageError(f"there is no verb {verb!r}.{close_to(verb, VERBS)} See `bench --help`.")
    command = typer.main.get_command(importlib.import_module(VERBS[verb][0]).app)
    code = command.main(rest, prog_name=f"bench {verb}", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _help() -> str:
    lines = [f"  {verb:<8} {about}" for verb, (_, about) in VERBS.items()]
    return "\n".join(
        [
            "Does torch.compile work, how much faster is it, and what changed since yesterday?",
            "",
            "Usage: bench VERB [OPTIONS]        bench VERB --help        bench --version",
            "",
            *lines,
        ]
    )


if __name__ == "__main__":
    main()
