"""The command `bench`: verbs registered here, imported when called; errors become text and exit codes."""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import version

import click
import typer

from harness.errors import BenchError, close_to

VERBS = {
    "run": "Measure models, eager against compiled.",
    "list": "Show suites, models, devices or runs.",
    "plan": "Show what a run would do, without doing it.",
    "serve": "Serve the dashboard.",
    "import": "Load journals into the database.",
}
_MODULES = {"run": "bench.run", "list": "bench.list", "plan": "bench.plan", "serve": "bench.serve", "import": "bench.data"}


class Verbs(click.Group):
    """Looks a verb up by name and imports its module only then."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = typer.main.get_command(importlib.import_module(_MODULES[cmd_name]).app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise click.UsageError(f"there is no verb {args[0]!r}.{close_to(args[0], VERBS)} See `bench --help`.")
        return super().resolve_command(ctx, args)


def main(args: list[str] | None = None) -> None:
    """Run one verb and leave with its exit code. See `docs/architecture.md` for what each code means."""
    group = Verbs(name="bench", help="Does torch.compile work, and how much faster is it?", no_args_is_help=True)
    group = click.version_option(version("compile-bench"), prog_name="bench")(group)
    try:
        code = group.main(args, prog_name="bench", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        code = 2
    except click.ClickException as error:
        print(f"bench: {error.format_message()}", file=sys.stderr)
        code = error.exit_code
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("bench: interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
