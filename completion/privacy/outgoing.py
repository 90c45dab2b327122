"""A prompt's material as it may leave the machine. Must not know where it goes or how the prompt is formed."""

from __future__ import annotations

import re
from dataclasses import replace

from completion.privacy.redactor import Redactor
from completion.privacy.stand_ins import StandIn
from completion.prompt import Material
from completion.types import Text, Window

# Of a line that the window cuts, so many code points out of sight are looked at; of a private key, so many.
_LINE, _KEY = 2000, 8000

_LINE_END = re.compile(r"[\r\n]")
_MATERIAL = re.compile(r"[\s\"'#>*|]*[A-Za-z0-9+/]{40}")


def outgoing(material: Material, redactor: Redactor, around: tuple[str, str]) -> tuple[Material, tuple[StandIn, ...]]:
    """`material` with stand-ins in the place of secrets. The text of its extra files was cleaned before.

    `around` is what stands before the prefix and behind the suffix. Prefix and suffix are looked at as one, so that a
    secret with the cursor inside is seen whole.
    """
    end = len(material.prefix)
    window = redactor.clean(material.prefix + material.suffix, *around)
    stand_ins = window.stand_ins
    names = {name: redactor.clean(name) for name in (material.path, material.repo) if name}
    extra = []
    for number, file in enumerate(material.extra, 1):
        path = redactor.clean(file.path)
        found = redactor.found_in(file.text)
        stand_ins += tuple(replace(each, extra=number) for each in (*path.stand_ins, *found))
        extra.append(replace(file, path=path.text) if path.stand_ins else file)
    if not (stand_ins or any(name.stand_ins for name in names.values())):
        return material, ()
    cleaned = replace(
        material,
        prefix=window.text[:end],
        suffix=window.text[end:],
        path=names[material.path].text if material.path else material.path,
        repo=names[material.repo].text if material.repo else material.repo,
        extra=tuple(extra),
    )
    return cleaned, (*stand_ins, *(each for name in names.values() for each in name.stand_ins))


def around(text: Text, window: Window, hole_end: int) -> tuple[str, str]:
    """What of the lines that the window cuts is out of its sight, or of a private key that it begins in."""
    before = after = ""
    if window.start > 0:
        if text.slice(window.start - 1, window.start) not in "\r\n":
            before = _LINE_END.split(text.slice(window.start - _LINE, window.start))[-1]
        elif _MATERIAL.match(window.prefix or window.suffix):
            before = _normal(text.slice(window.start - _KEY, window.start))
    if window.suffix and not window.suffix.endswith("\n"):
        seen = _normal(text.slice(hole_end, hole_end + len(window.suffix) + window.suffix.count("\n") + _LINE))
        if seen.startswith(window.suffix):
            after = seen[len(window.suffix) :].partition("\n")[0]
    return before, after


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
