"""Places for `midfill bench context`: a line held out of a file, the documents open then, what the line needs.

The cursor is on the empty line where the held-out one was. Knows no way to choose context.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from backends.base import Capabilities, Shape, SilentObserver
from completion.plan import Planner
from completion.privacy import Ignored
from completion.settings import CompletionSettings, ContextSettings, EngineSettings
from completion.types import CompletionContext, DocumentSnapshot, PlainText, Window
from lsp_server.bench.context_code import WORD, CodeFile, uses
from lsp_server.bench.context_data import Repository

TOKENS = 1_000  # what each way to choose may show
OPEN = 20  # documents
# The window is that of the default settings where other files take all they may; the rest is for the files.
_DEFAULT = CompletionSettings().prompt_tokens
SETTINGS = CompletionSettings(prompt_tokens=_DEFAULT + TOKENS)
CAPABILITIES = Capabilities(shapes=frozenset({Shape.RAW}), remote=False)
_TOGETHER = 6  # open documents that were changed together with the current one
_LATER = 0.5  # how much later than related ones the others were viewed, of the time in which all were
_WRITTEN = 3  # open documents in which was written just before, at most
_TRIES = 60  # lines looked at for each place wanted
_LEAST = 3  # files of a language: with fewer there is nothing elsewhere
_PART = 0.1  # of the files: languages with fewer are not what the repository is written in


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """`wanted`: identifiers of the held-out line that are defined in other files and do not stand in the window."""

    repository: Repository
    file: CodeFile
    line: int  # from 0
    wanted: frozenset[str]
    context: CompletionContext


def engine_settings(sources: Sequence[str]) -> EngineSettings:
    shares = ContextSettings()
    prompt = SETTINGS.prompt_tokens
    # A little more than the quotient, as the product is rounded down.
    return EngineSettings(
        completion=SETTINGS,
        context=ContextSettings(
            sources=tuple(sources),
            suffix_share=shares.suffix_share * _DEFAULT / prompt,
            extra_share=(TOKENS + 0.5) / prompt,
        ),
    )


class _Stopped:
    """A clock on which no source is late: the engine asks again what was, and a busy machine is no fault of theirs."""

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


def planner(sources: Sequence[str]) -> Planner:
    """Chooses as the engine does."""
    return Planner(engine_settings(sources), "", SilentObserver(), Ignored(()), _Stopped())


def window(context: CompletionContext, tokens: int) -> Window:
    """What is shown of the document itself with `tokens` for everything and nothing else to show."""
    settings = replace(SETTINGS, prompt_tokens=tokens)
    suffix = engine_settings(()).context.suffix_share * SETTINGS.prompt_tokens / tokens
    shares = replace(engine_settings(()), context=ContextSettings(sources=(), suffix_share=suffix))
    return Planner(shares, "", SilentObserver(), Ignored(())).plan(context, settings, CAPABILITIES).window


class Sampler:
    """Draws the places of one repository. The same seed draws the same."""

    def __init__(self, repository: Repository, seed: int) -> None:
        self._repository = repository
        self._random = random.Random(f"{seed}:{repository.name}")
        self._documents = {path: self._document(file, file.text, 1) for path, file in repository.files.items()}
        self._count = 0

    def places(self, count: int) -> list[Place]:
        """At most `count`, of the languages the repository is written in alike."""
        files = self._repository.files
        languages = Counter(file.language_id for file in files.values())
        least = max(_LEAST, _PART * len(files))
        chosen = sorted(language for language, number in languages.items() if number >= least)
        return [
            place
            for number, language in enumerate(chosen)
            for place in islice(
                self._drawn(language, count * _TRIES // len(chosen)), _share(count, number, len(chosen))
            )
        ]

    def _drawn(self, language: str, tries: int) -> Iterator[Place]:
        files = [file for file in self._repository.files.values() if file.language_id == language]
        drawn = self._random.choices(files, weights=[file.text.count("\n") + 1 for file in files], k=tries)
        seen: set[tuple[str, int]] = set()
        for file in drawn:
            line = self._random.randrange(file.text.count("\n") + 1)
            place = None if (file.path, line) in seen else self._place(file, line)
            seen.add((file.path, line))
            if place is not None:
                yield place

    def _place(self, file: CodeFile, line: int) -> Place | None:
        """None if the line needs nothing of other files."""
        needed = {name for name in uses(file).get(line, ()) if self._elsewhere(file, line, name)}
        if not needed:
            return None
        before, after = file.lines[:line], file.lines[line + 1 :]
        self._count += 1
        document = self._document(file, "\n".join((*before, "", *after)), 1 + self._count)
        context = CompletionContext(document, sum(len(text) + 1 for text in before), repo=self._repository.name)
        seen = window(context, SETTINGS.prompt_tokens - TOKENS)
        wanted = frozenset(needed.difference(WORD.findall(seen.prefix), WORD.findall(seen.suffix)))
        if not wanted:
            return None
        written = self._written(file, line)
        others = tuple(self._documents[other.path] for other in self._open(file) if other.path not in written)
        others = (*written.values(), *others)[:OPEN]
        return Place(self._repository, file, line, wanted, replace(context, others=others))

    def _elsewhere(self, file: CodeFile, line: int, name: str) -> bool:
        """Whether other files define the name and this one does not, but for the held-out line."""
        here = file.defines.get(name, frozenset()) - {line}
        return not here and bool(self._repository.definers.get(name, frozenset()) - {file.path})

    def _open(self, file: CodeFile) -> list[CodeFile]:
        """Half of what the file imports, what was changed with it, and any others; most recently viewed first."""
        files = self._repository.files
        related = {other.path for other in self._repository.imported(file) if self._random.random() < 0.5}
        together = self._repository.together.get(file.path)
        related.update(path for path, _ in (together.most_common(_TOGETHER) if together else ()))
        related -= {file.path}
        opened = self._random.sample(sorted(related), min(len(related), OPEN))
        others = [path for path in files if path not in related and path != file.path]
        opened += self._random.sample(others, min(len(others), OPEN - len(opened)))
        viewed = {path: self._random.random() + _LATER * (path not in related) for path in opened}
        return [files[path] for path in sorted(opened, key=viewed.__getitem__)]

    def _written(self, file: CodeFile, line: int) -> dict[str, DocumentSnapshot]:
        """Documents of which the user has just written what the commit of the line added to them: half of these."""
        history = self._repository.history
        found: dict[str, DocumentSnapshot] = {}
        for path, commit in history.written_with(file.path, line).items():
            if len(found) < _WRITTEN and self._random.random() < 0.5:
                document = self._documents[path]
                before = history.before(path, self._repository.files[path].text, commit)
                found[path] = replace(document, opened=PlainText(before))
        return found

    def _document(self, file: CodeFile, text: str, version: int) -> DocumentSnapshot:
        path = self._repository.root / file.path
        root = str(self._repository.root)
        return DocumentSnapshot(path.as_uri(), file.language_id, version, PlainText(text), file.path, root)


def _share(count: int, number: int, parts: int) -> int:
    return count * (number + 1) // parts - count * number // parts
