"""Words of others made fit for a message: no secret, no source text, one short line. Knows no service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import httpx

from backends.plain import plain

SHOWN_CHARACTERS = 200  # of a service's own message
READ_CHARACTERS = 4096  # of a service's own message that are looked at
LINE_CHARACTERS = 8  # shorter lines of source say nothing
RUN_CHARACTERS = 16  # of source, blanks aside: so much in a row is no chance
SECRET_CHARACTERS = 8  # of a secret, in a row: some services repeat the beginning of a key

# Where characters stand that stand for others or for nothing: escapes, however often they were escaped, and blanks.
_QUOTING = re.compile(r"\\+u([0-9a-fA-F]{4})|\\+[nrt]?|\s")

Characters = Iterator[tuple[str, int, int]]  # each with its start and end


def shown_url(url: httpx.URL) -> str:
    """The URL as messages may show it: no user, password, query or fragment."""
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{bracketed(url.host)}{port}{url.path}"


def bracketed(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def safe_text(text: str, *, secrets: tuple[str, ...] = (), source: str = "") -> str:
    """`text` in one short line, without secrets and without lines or longer parts of `source`, quoted or not."""
    text = text[:READ_CHARACTERS]
    for secret in secrets:
        text = _without(text.replace(secret, "***"), secret, SECRET_CHARACTERS, "***", _as_it_is)
    # Each line is looked for in what is short, once: a prompt may have many thousands.
    found = {line for each in source.split("\n") if len(line := each.strip()) >= LINE_CHARACTERS and line in text}
    for line in sorted(found, key=len, reverse=True):
        text = text.replace(line, "…")
    text = _without(text, source, RUN_CHARACTERS, "…", _unquoted)
    text = plain(" ".join(text.split())).rstrip(".。")
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def _without(text: str, known: str, size: int, mark: str, read: Callable[[str], Characters]) -> str:
    """`text` with `mark` for each part, of `size` characters or more, that is in `known` too, both as `read` has it."""
    characters = list(read(text)) if len(known) >= size else []
    seen = "".join(character for character, _, _ in characters)
    whole = known if read is _as_it_is else _QUOTING.sub(_meant, known)
    wanted = {seen[start : start + size] for start in range(len(seen) - size + 1)}
    parts = {part for start in range(len(whole) - size + 1) if (part := whole[start : start + size]) in wanted}
    pieces, done, hit = [], 0, -size - 1
    for start in range(len(seen) - size + 1):
        if seen[start : start + size] not in parts:
            continue
        if start > hit + size:
            pieces += [text[done : characters[start][1]], mark]
        hit, done = start, characters[start + size - 1][2]
    return "".join([*pieces, text[done:]])


def _as_it_is(text: str) -> Characters:
    return ((character, index, index + 1) for index, character in enumerate(text))


def _meant(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else ""


def _unquoted(text: str) -> Characters:
    begin = 0
    for match in _QUOTING.finditer(text):
        yield from ((text[index], index, index + 1) for index in range(begin, match.start()))
        if meant := _meant(match):
            yield meant, match.start(), match.end()
        begin = match.end()
    yield from ((text[index], index, index + 1) for index in range(begin, len(text)))
