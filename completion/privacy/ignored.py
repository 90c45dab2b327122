"""Which documents are neither completed in nor quoted, and by which rule. Must not know what they hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from completion.privacy.built_in import BUILT_IN, SAMPLES
from completion.privacy.globs import Globs
from completion.privacy.ignore_files import IgnoreFiles
from completion.types import DocumentSnapshot

_REMEMBERED = 1000  # documents whose answer is kept


@cache
def _built_in() -> tuple[Globs, Globs]:
    return Globs(BUILT_IN), Globs(SAMPLES)


@dataclass(frozen=True, slots=True)
class _Named:
    """What the name alone says: why it is ignored; or that it is not, whatever files of patterns say."""

    why: str = ""
    kept: bool = False


class Ignored:
    """Asked with a document, tells whether it is ignored: by `globs`, by a built-in pattern, or by a file of patterns.

    `globs` are read as `Globs` reads them. One that begins with `!` keeps what it matches, unless another one of them
    matches it, too. `files` are the names of files of patterns, such as `.gitignore`. `clock` tells seconds.
    """

    def __init__(
        self, globs: Iterable[str], files: Iterable[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        given = [glob.strip() for glob in globs]
        self._globs = Globs(glob for glob in given if not glob.startswith("!"))
        self._kept = Globs(glob[1:] for glob in given if glob.startswith("!"))
        self._files = IgnoreFiles(files, clock)
        self._known: dict[tuple[str, str | None], _Named] = {}

    def __call__(self, document: DocumentSnapshot) -> bool:
        return bool(self.why(document))

    def why(self, document: DocumentSnapshot) -> str:
        """The rule that it is ignored by, as the end of a sentence; nothing, if it is not."""
        key = (document.uri, document.path)
        named = self._known.get(key)
        if named is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            named = self._known[key] = self._named(document)
        return named.why or ("" if named.kept else self._files.why(document))

    def saved(self, uri: str) -> None:
        """A document was saved: if it holds patterns, they are read at once."""
        self._files.saved(uri)

    def _named(self, document: DocumentSnapshot) -> _Named:
        if glob := self._globs.match(document):
            return _Named(f"it matches `{glob}` of privacy.ignore")
        if self._kept.match(document):
            return _Named(kept=True)
        built_in, samples = _built_in()
        if (glob := built_in.match(document)) and not samples.match(document):
            return _Named(f"it matches the built-in pattern `{glob}`")
        return _Named()
