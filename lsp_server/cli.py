"""The command line: arguments in, exit code out. Imports next to nothing: `midfill serve` has to start fast.

Exit codes: see _EXIT_CODES.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from lsp_server import fds
from lsp_server.options import ServeOptions

if TYPE_CHECKING:
    from collections.abc import Callable

DONE, NO_SUGGESTION, USAGE, BACKEND_FAILURE, INTERRUPTED = 0, 1, 2, 3, 130

_EXIT_CODES = """\
exit codes:
  0    done
  1    no suggestion, as there is none to make; models path: not here; serve: the editor went away without saying so
  2    the usage or the settings are wrong, or the result could not be written
  3    the service or the local model failed; models pull: it could not be had
  130  interrupted
"""
_IN_A_TERMINAL = """\
midfill is a language server: an editor starts it and talks to it over stdin and stdout.
In an editor, set the command to: {command}
Here, try:
  midfill complete FILE:LINE:COL   complete a file at a place
  midfill doctor                   see what is set up and whether it works
  midfill --help                   everything else
"""


class _Version(argparse.Action):
    """Reads the version only when asked for it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from lsp_server.version import version

        fds.show(f"midfill {version()}\n")
        parser.exit(DONE)


class _Parser(argparse.ArgumentParser):
    """Does not keep quiet about help that nobody got, and never complains on stdout."""

    def print_help(self, file: Any = None) -> None:
        fds.show(self.format_help())

    def error(self, message: str) -> NoReturn:
        fds.say(f"{self.format_usage()}{self.prog}: error: {message}\n")
        raise SystemExit(USAGE)


def run(arguments: Sequence[str]) -> int:
    """Run a command. Raises SystemExit for wrong usage (2) and for help, as argparse does."""
    try:
        try:
            return _run(arguments)
        finally:
            fds.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough
        return DONE
    except fds.OutputError as error:
        return fail(f"the result cannot be written: {error.strerror}")


def _run(arguments: Sequence[str]) -> int:
    if not arguments and sys.stdin is not None and sys.stdin.isatty():
        fds.say(_IN_A_TERMINAL.format(command=Path(sys.argv[0]).absolute()))
        return USAGE
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version")):
        arguments = ["serve", *arguments]  # clients add --stdio of their own accord
    parsed = _parser(arguments[0]).parse_args(arguments)
    config: Path | None = parsed.config
    if config and not config.is_file():
        return fail(f"{config}: {'is not a regular file' if config.exists() else 'there is no such file'}")
    command: Callable[[argparse.Namespace], int] = parsed.command
    return command(parsed)


def fail(message: str) -> int:
    """Say what is wrong with the usage or the settings."""
    fds.say(f"midfill: {message}\n")
    return USAGE


def _parser(chosen: str) -> argparse.ArgumentParser:
    """`chosen` is the first argument: what only one command needs is imported for that one."""
    parser = _Parser(
        prog="midfill",
        description="Language server for inline code completion.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", nargs=0, action=_Version, help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_serve(commands.add_parser("serve", help="serve an editor; what `midfill` alone does as well"))
    _add_complete(commands.add_parser("complete", help="complete a file at a place and print the text"))
    doctor = commands.add_parser("doctor", help="show what is set up and whether it works")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    doctor.set_defaults(command=_doctor)
    _add_config(doctor)
    _add_gateway(commands.add_parser("gateway", help="serve the backends over HTTP to other tools and machines"))
    bench = commands.add_parser("bench", help="measure quality and speed")
    if chosen == "bench":
        from lsp_server.bench import add_benches

        add_benches(bench)
    _add_models(commands.add_parser("models", help="local models"))
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="read this file instead of the user's config.toml")


def _add_serve(parser: argparse.ArgumentParser) -> None:
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--stdio", action="store_true", help="talk over stdin and stdout (the default)")
    way.add_argument("--tcp", type=_address, metavar="HOST:PORT", help="listen there instead; port 0: any")
    parser.add_argument("--log-file", type=Path, metavar="FILE", help="append the log to FILE instead of stderr")
    parser.add_argument("--trace", type=Path, metavar="FILE.jsonl", help="append one JSON object per request to FILE")
    parser.add_argument("--trace-text", action="store_true", help="prompts and answers go into the trace, too")
    parser.add_argument("-v", "--verbose", action="store_true", help="log more; the log may then hold source text")
    parser.set_defaults(command=_serve)
    _add_config(parser)


def _add_complete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="FILE:LINE:COL", help="LINE and COL count from 1, COL in characters")
    parser.add_argument(
        "--open", action="append", type=Path, metavar="FILE", default=[], help="a file shown to the model; repeatable"
    )
    parser.add_argument("--backend", metavar="NAME[,NAME]", default="", help="ask these entries of the settings")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--explain", action="store_true", help="say on stderr what was asked and how long it took")
    parser.add_argument("--stream", action="store_true", help="show on stderr what the model writes, as it writes")
    parser.set_defaults(command=_complete)
    _add_config(parser)


def _add_gateway(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="where to listen; any but this machine needs --key-env")
    parser.add_argument("--port", type=_port, default=8012, help="8012 if not given; 0: any")
    parser.add_argument("--backend", metavar="NAME[,NAME]", default="", help="serve these entries of the settings")
    parser.add_argument("--key-env", metavar="NAME", default="", help="environment variable with the key clients send")
    parser.add_argument("--log-file", type=Path, metavar="FILE", help="append the log to FILE instead of stderr")
    parser.add_argument("-v", "--verbose", action="store_true", help="log more; the log may then hold source text")
    parser.set_defaults(command=_gateway)
    _add_config(parser)


def _add_models(parser: argparse.ArgumentParser) -> None:
    models = parser.add_subparsers(metavar="ACTION", required=True)
    listing = models.add_parser("list", help="show the known models, and which one suits this machine")
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    listing.set_defaults(command=_models_list, config=None)
    pull = models.add_parser("pull", help="download a model")
    pull.add_argument(
        "model", metavar="NAME|REPO:FILE", help="a name of the list, or owner/repository:file.gguf[@revision]"
    )
    pull.set_defaults(command=_models_pull, config=None)
    path = models.add_parser("path", help="print the path of a model's GGUF file")
    path.add_argument("model", metavar="NAME|REPO:FILE", nargs="?", default="", help="without it: of the one in use")
    path.set_defaults(command=_models_path)
    _add_config(path)


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host, int(port)


def _serve(arguments: argparse.Namespace) -> int:
    from lsp_server import logs

    if arguments.trace_text and not arguments.trace:
        return fail("--trace-text needs --trace FILE")
    try:
        logs.setup(arguments.log_file, verbose=arguments.verbose)
        if arguments.trace:
            os.close(os.open(arguments.trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError as error:
        return fail(f"cannot write to {error.filename}: {error.strerror}")
    host, port = arguments.tcp or ("127.0.0.1", 0)
    options = ServeOptions(
        transport="tcp" if arguments.tcp else "stdio",
        host=host,
        port=port,
        trace_file=arguments.trace,
        trace_text=arguments.trace_text,
        config_file=arguments.config,
        verbose=arguments.verbose,
        log_file=arguments.log_file,
    )
    from lsp_server.server import serve

    if not arguments.tcp and sys.stdin and sys.stdin.isatty():
        fds.say("midfill: waiting for an editor to speak LSP here; Ctrl+C ends it\n")
    try:
        with fds.take_stdin() as stdin, fds.take_stdout() as stdout:
            return serve(options, stdin, stdout)
    except OSError as error:  # the address is in use, or stdin and stdout are closed
        return fail(f"cannot serve: {error.strerror or error}")


def _complete(arguments: argparse.Namespace) -> int:
    from lsp_server.commands.complete import command

    return command(arguments)


def _doctor(arguments: argparse.Namespace) -> int:
    from lsp_server.commands.doctor import command

    return command(arguments)


def _gateway(arguments: argparse.Namespace) -> int:
    from lsp_server.commands.gateway import command

    return command(arguments)


def _models_list(arguments: argparse.Namespace) -> int:
    from lsp_server.commands.models import list_command

    return list_command(arguments)


def _models_pull(arguments: argparse.Namespace) -> int:
    from lsp_server.commands.models import pull_command

    return pull_command(arguments)


def _models_path(arguments: argparse.Namespace) -> int:
    from lsp_server.commands.models import path_command

    return path_command(arguments)
