"""Stands between an editor and the server and keeps what the editor wrote: `tapped(FILE, COMMAND)` is its command.

FILE gets each message of the editor as one line of JSON. Changes nothing of what passes; ends as the server ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent.parent


def tapped(file: Path, command: list[str]) -> list[str]:
    """The command that runs `command` with what it reads kept in `file`, from any folder."""
    return [sys.executable, str(Path(__file__).resolve()), str(file), *command]


def messages(file: Path, method: str = "") -> list[dict[str, Any]]:
    """What was kept so far, of one method or of all; a line that is still being written is left out."""
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
    found = [json.loads(line) for line in lines]
    return [message for message in found if not method or message.get("method") == method]


def _pass_on(source: IO[bytes], target: IO[bytes], kept: IO[str]) -> None:
    """Message by message, until the editor closes its end or the server has gone."""
    try:
        while header := source.readline():
            length = 0
            head = header
            while header not in (b"\r\n", b""):
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                header = source.readline()
                head += header
            body = source.read(length)
            target.write(head + body)
            target.flush()
            kept.write(json.dumps(json.loads(body), ensure_ascii=False) + "\n")
            kept.flush()
        target.close()
    except OSError:
        pass  # the server has gone, which the editor sees for itself


def main() -> int:
    file, *command = sys.argv[1:]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    with (
        Path(file).open("a", encoding="utf-8") as kept,
        subprocess.Popen(command, stdin=subprocess.PIPE, env=environ) as server,
    ):
        assert server.stdin is not None
        threading.Thread(target=_pass_on, args=(sys.stdin.buffer, server.stdin, kept), daemon=True).start()
        code = server.wait()
        os._exit(code if code >= 0 else 128 - code)  # the thread may still read


if __name__ == "__main__":
    main()
