"""Entry point: makes sure that `backends` and `completion` are midfill's own, then runs the command line.

The names are common: the folder the user stands in, or PYTHONPATH, may have packages of the same name.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def _bind_own_packages() -> str:
    """Import our packages wherever else theirs names are found first. Returns what is wrong, or nothing.

    Once a package is imported its modules are found through its `__path__`, so the search path can be as it was: with
    our folder first on it, packages installed beside us would hide the standard library.
    """
    sys.path.insert(0, str(_ROOT))
    try:
        for name in ("backends", "completion"):
            file = getattr(importlib.import_module(name), "__file__", None)
            if file is None:  # another distribution's uninstall took our __init__.py
                return f"package {name!r} in {_ROOT} is damaged: install midfill again"
            origin = Path(file).resolve().parent.parent
            if origin != _ROOT:
                return f"package {name!r} comes from {origin}, expected {_ROOT}"
    finally:
        sys.path.remove(str(_ROOT))
    return ""


def main() -> int:
    wrong = _bind_own_packages()
    if wrong:
        sys.stderr.write(f"midfill: {wrong}\n")
        return 2
    from lsp_server.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
