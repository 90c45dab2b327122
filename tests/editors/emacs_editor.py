"""A real Emacs with the package, on a terminal, driven by keys; what it knows is asked for through emacsclient."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.editors.terminal import Terminal, missing_terminal, terminal
from tests.lsp_client import ROOT, SERVE

PACKAGE = ROOT / "editors" / "emacs"
GHOST = "color-201"  # a colour that nothing else has, as Emacs and the screen call it
GHOST_ON_SCREEN = "ff00ff"
WIDTH, HEIGHT = 100, 20  # cells
BARE = ["-q", "--no-site-file", "--no-splash"]  # what Debian installs can be loaded, and nothing is
INIT = """
(setq inhibit-startup-screen t make-backup-files nil auto-save-default nil create-lockfiles nil
      native-comp-deferred-compilation nil native-comp-async-report-warnings-errors nil
      ring-bell-function #'ignore load-prefer-newer t
      package-user-dir {packages} server-socket-dir {socket} server-name "test")
(package-initialize)
(menu-bar-mode -1)
(global-eldoc-mode -1) ; its timer would take a C-g
(global-font-lock-mode -1)
{load}
(setq midfill-server-command {command} midfill-settings {settings})
{init}
(require 'midfill)
(require 'server)
(set-face-attribute 'midfill-suggestion nil :inherit nil :foreground {ghost})
(global-midfill-mode)
{after}
(server-start)
"""


def missing() -> str:
    """Why there is no Emacs to test with; empty if there is one."""
    for program in ("emacs", "emacsclient"):
        if shutil.which(program) is None:
            return f"there is no {program} on the path"
    return missing_terminal()


def lisp(value: Any) -> str:
    """A Python value as a Lisp expression that gives it."""
    if value is None or value is False:
        return "nil"
    if value is True:
        return "t"
    if isinstance(value, list):
        return "(list " + " ".join(map(lisp, value)) + ")"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


def environ_of(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """A home of its own, nothing of the user's."""
    home.mkdir(parents=True, exist_ok=True)
    return {"HOME": str(home), "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(home / ".config"), **(more or {})}


def socket_folder(home: Path) -> Path:
    """Where the socket of Emacs' server is, which must be readable for nobody else."""
    folder = home / "s"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def write_init(
    home: Path,
    command: list[str] | None,
    *,
    settings: str = "nil",
    init: str = "",
    after: str = "",
    package: Path | None = PACKAGE,
) -> Path:
    """An init file; `init` is read before the package, `after` behind it. `settings` is Lisp; `package` its folder."""
    home.mkdir(parents=True, exist_ok=True)
    file = home / "init.el"
    text = INIT.format(
        packages=lisp(str(home / "elpa")),
        socket=lisp(str(socket_folder(home))),
        load=f"(add-to-list 'load-path {lisp(str(package))})" if package else "",
        command=lisp(command),
        settings=settings,
        ghost=lisp(GHOST),
        init=init,
        after=after,
    )
    file.write_text(text, encoding="utf-8")
    return file


class Emacs:
    """One Emacs. Keys are typed as a user does; the screen is what a user sees."""

    def __init__(self, terminal: Terminal, home: Path, environ: Mapping[str, str]) -> None:
        self.terminal = terminal
        self._home = home
        self._environ = {**os.environ, **environ}

    # Doing ------------------------------------------------------------------------------------------------------------

    def type(self, keys: str) -> None:
        """Keys as a terminal sends them: `\\t`, `\\x07` is C-g."""
        self.terminal.type(keys)

    def alt(self, key: str) -> None:
        self.terminal.alt(key)

    def eval(self, code: str) -> Any:
        """The value of Lisp, as JSON has it; current is the buffer that is looked at."""
        wrapped = f"(with-current-buffer (window-buffer) (json-encode (progn {code})))"
        client = ["emacsclient", "-s", str(socket_folder(self._home) / "test"), "--eval", wrapped]
        done = subprocess.run(client, env=self._environ, capture_output=True, timeout=100, check=False)
        self.terminal.read(0)
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
        text = done.stdout.decode().strip()
        return json.loads(json.loads(text, strict=False))

    def edit(self, path: Path, content: str | bytes, at: tuple[int, int]) -> None:
        """Open a new file; point is put before the character at (line from 1, column from 0)."""
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.visit(path)
        self.eval(f"(goto-char (point-min)) (forward-line {at[0] - 1}) (forward-char {at[1]}) t")
        self.until(self.attached, "the server knows the file")

    def visit(self, path: Path) -> None:
        self.type("\x18\x06")  # C-x C-f
        self.until(lambda: any("Find file:" in line for line in self.terminal.lines()[-4:]), "the prompt")
        self.type("\x01\x0b" + str(path) + "\r")  # C-a C-k
        self.until(lambda: self.eval("(and buffer-file-name t)") and self.buffer_file() == str(path), "the file")

    def save(self) -> bytes:
        """Write the file as the user does, return what is on the disk."""
        self.type("\x18\x13")  # C-x C-s
        self.until(lambda: not self.eval("(buffer-modified-p)"), "saved")
        return Path(self.buffer_file()).read_bytes()

    # Seeing -----------------------------------------------------------------------------------------------------------

    @property
    def ghost(self) -> str:
        return self.terminal.coloured(GHOST_ON_SCREEN)

    @property
    def mode_line(self) -> str:
        """Of the lowest window; a long message may have pushed it up."""
        return next((line for line in reversed(self.terminal.lines()) if line.startswith("-U")), "")

    def text(self) -> str:
        return str(self.eval("(buffer-substring-no-properties (point-min) (point-max))"))

    def buffer_file(self) -> str:
        return str(self.eval("buffer-file-name"))

    def attached(self) -> bool:
        return bool(self.eval("(and (midfill-server-connection) t)"))

    def messages(self) -> list[str]:
        text = str(self.eval('(with-current-buffer "*Messages*" (buffer-string))'))
        return [line for line in text.split("\n") if line]

    def status(self) -> dict[str, Any]:
        """What the server counts."""
        self.eval(
            "(setq test-status nil) (midfill-connection-execute (midfill-server-connection) "
            '"midfill.status" nil (lambda (result) (setq test-status result))) t'
        )
        self.until(lambda: self.eval("(and test-status t)"), "the server's status")
        found: dict[str, Any] = self.eval("test-status")
        return found

    # Waiting ----------------------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[], Any], what: str) -> None:
        self.terminal.until(condition, what)

    def shows(self, ghost: str) -> None:
        """Wait until this is the ghost text, exactly."""
        self.until(lambda: self.ghost == ghost, f"the ghost text {ghost!r}")

    def at(self, cursor: tuple[int, int]) -> None:
        """Wait until the cursor is there, row and column from 0."""
        self.until(lambda: self.terminal.cursor == cursor, f"the cursor at {cursor}")

    def becomes(self, text: str) -> None:
        """Wait until this is the text."""
        self.until(lambda: self.text() == text, f"the text {text!r}")


@contextlib.contextmanager
def emacs(
    home: Path,
    *,
    server: list[str] | None = None,
    command: list[str] | None = None,
    settings: str = "nil",
    environ: Mapping[str, str] | None = None,
    init: str = "",
    after: str = "",
    package: Path | None = PACKAGE,
) -> Iterator[Emacs]:
    """Emacs as its user starts it, with nothing but the package. `server`: arguments of the real server."""
    chosen = command if server is None else [*SERVE, *server]
    file = write_init(home, chosen, settings=settings, init=init, after=after, package=package)
    variables = environ_of(home, environ)
    argv = ["emacs", "-nw", *BARE, "--load", str(file)]
    with terminal(argv, environ=variables, folder=home, width=WIDTH, height=HEIGHT) as started:
        editor = Emacs(started, home, variables)
        started.until(lambda: (home / "s" / "test").exists() and "scratch" in editor.mode_line, "Emacs is up")
        yield editor
