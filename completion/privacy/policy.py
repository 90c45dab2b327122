"""What of a document may go where. Must not know backends."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping

from completion.clock import Clock
from completion.privacy.globs import Globs
from completion.privacy.ignored import Ignored
from completion.settings import EngineSettings
from completion.types import DocumentSnapshot

_REMEMBERED = 1000  # documents whose answer is kept

# Ids that editors give files read from the disk, whose language nobody has told.
_SCRIPT, _TYPED = ("javascript", "javascriptreact"), ("typescript", "typescriptreact")
_BY_SUFFIX: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), ("python",)),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), _SCRIPT),
    **dict.fromkeys((".ts", ".mts", ".cts", ".tsx"), _TYPED),
    ".go": ("go",),
    ".rs": ("rust",),
    ".java": ("java",),
    **dict.fromkeys((".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx"), ("cpp", "objective-cpp", "cuda-cpp")),
    **dict.fromkeys((".c", ".h"), ("c", "cpp", "objective-c", "objective-cpp", "cuda-cpp")),
}


class Policy:
    """`ignored` tells what no model is shown, `stays` what no remote one is."""

    def __init__(self, settings: EngineSettings, clock: Clock) -> None:
        privacy = settings.privacy
        self.ignored = Ignored(privacy.ignore, privacy.ignore_files, clock.now)
        self._languages = frozenset(settings.local_languages)
        self._only = Globs(privacy.local_only)
        self._folders = Globs(map(_all_in, settings.local_folders))
        self._any = bool(privacy.local_only or settings.local_folders or settings.local_languages)
        self._known: dict[tuple[str, str | None, str], str] = {}

    def stays(self, document: DocumentSnapshot) -> str:
        """Why a document stays on this machine, as the end of a sentence; nothing, if it need not."""
        if not self._any:
            return ""
        key = (document.uri, document.path, document.language_id)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._why(document)
        return known

    def hidden(self, *, remote: bool) -> Callable[[DocumentSnapshot], bool]:
        """Tells what is not quoted where another document is completed."""
        return self._hidden if remote and self._any else self.ignored

    def left_out(self, document: DocumentSnapshot, *, remote: bool) -> str:
        """Why a document is not quoted, as the end of a sentence; nothing, if it may be."""
        return self.ignored.why(document) or (self.stays(document) if remote else "")

    def _hidden(self, document: DocumentSnapshot) -> bool:
        return self.ignored(document) or bool(self.stays(document))

    def _why(self, document: DocumentSnapshot) -> str:
        if document.language_id:
            languages = self._languages & {document.language_id}
        else:  # it may be any, if the name does not say
            suffix = posixpath.splitext(document.path or document.uri)[1].lower()
            languages = self._languages & set(_BY_SUFFIX.get(suffix, self._languages))
        if languages:
            return f"languages.{min(languages)}.allow_remote is false"
        if glob := self._only.match(document):
            return f"the file matches `{glob}` of privacy.local_only"
        if self._folders.match(document):
            return "its project says privacy.allow_remote = false"
        return ""


def _all_in(folder: str) -> str:
    """A glob for everything in a folder."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in folder.replace("\\", "/").rstrip("/")) + "/"
