"""From the text around the cursor to the richest prompt both sides know. Must not know where the text came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from backends.base import (
    BackendError,
    Capabilities,
    ErrorKind,
    File,
    InfillPrompt,
    Piece,
    Prompt,
    RawPrompt,
    Shape,
)
from completion.chat_reply import PROSE, Reply
from completion.languages import comment_marks
from completion.privacy.stand_ins import StandIn
from completion.prompt.chat import CHAT_TOKENS, chat_prompt, hole_marker
from completion.prompt.families import UNKNOWN, Family
from completion.prompt.sanitize import Sanitizer, sanitizer_of
from completion.prompt.template import Filler, render

# Names a file in a block headed by a comment. Such a line in an answer ends it: the model goes on to another file.
_HEADING = "Path: "
_NAMELESS = "untitled"


@dataclass(frozen=True, slots=True)
class Material:
    """What the prompt is made of. Line ends are `\\n` only."""

    prefix: str
    suffix: str
    language_id: str
    path: str | None = None
    repo: str | None = None
    extra: tuple[File, ...] = ()  # most relevant last
    block: bool = True  # several lines are wanted


@dataclass(frozen=True, slots=True)
class Built:
    """A prompt with what is needed to read its answer."""

    prompt: Prompt
    stops: tuple[str, ...]  # for the service, most useful first
    terminators: tuple[str, ...]  # an answer ends before the first of them
    mends: Mapping[str, str]  # harmless forms of special tokens -> the tokens
    family: str = ""
    reply: Reply | None = None  # how to read a chat model's answer; None: it is the text alone
    spare_tokens: int = 0  # the answer holds that many besides the text
    blind: bool = False  # the prompt holds nothing of what follows the cursor
    stand_ins: tuple[StandIn, ...] = ()  # what stands in it for secrets


def build(material: Material, family: Family, capabilities: Capabilities) -> Built:
    """Raises BackendError(SETTINGS) if the backend takes none of the shapes formed here."""
    sanitizer = sanitizer_of(() if capabilities.literal_text else family.specials)
    clean = _cleaned(material, sanitizer)
    match _shape(family, capabilities):
        case Shape.INFILL:
            prompt, file_stop = _infill(clean, capabilities)
        case Shape.RAW:
            prompt, file_stop = _raw(clean, family)
        case Shape.CHAT:
            return _chat(clean, family, sanitizer)
        case None:
            raise BackendError(ErrorKind.SETTINGS, "This backend takes no shape of prompt that is formed here.")
    more = (file_stop,) if file_stop else ()
    reply = Reply("", clean.prefix, prose=clean.language_id in PROSE) if capabilities.chats else None
    stops, terminators = (*family.stops, *more), (*family.terminators, *more)
    blind = isinstance(prompt, RawPrompt) and not family.fim
    return Built(prompt, stops, terminators, sanitizer.broken, family.name, reply, blind=blind)


def _shape(family: Family, capabilities: Capabilities) -> Shape | None:
    """The best shape that the backend takes."""
    shapes = capabilities.shapes
    # A backend that reads tokens from a vocabulary knows their names, not the order the family was trained on.
    template = family.suffix_first if capabilities.literal_text else family.fim and capabilities.prefers_template
    if template and Shape.RAW in shapes:
        return Shape.RAW
    # Of a model that nothing is known of, more can be expected in a chat, where it sees both sides of the hole, than
    # as a continuation of the prefix.
    order = (Shape.INFILL, Shape.CHAT, Shape.RAW) if family is UNKNOWN else (Shape.INFILL, Shape.RAW, Shape.CHAT)
    return next((shape for shape in order if shape in shapes), None)


def _cleaned(material: Material, sanitizer: Sanitizer) -> Material:
    def name(text: str) -> str:
        return sanitizer.clean(text.replace("\n", " "))

    return Material(
        prefix=sanitizer.clean(material.prefix),
        suffix=sanitizer.clean(material.suffix),
        language_id=name(material.language_id),
        path=name(material.path) if material.path else None,
        repo=name(material.repo) if material.repo else None,
        extra=tuple(File(name(file.path), sanitizer.clean(file.text)) for file in material.extra),
        block=material.block,
    )


def _infill(material: Material, capabilities: Capabilities) -> tuple[Prompt, str]:
    path, repo, language = material.path, material.repo, material.language_id
    if capabilities.extra_files or not material.extra:
        return InfillPrompt(material.prefix, material.suffix, path, repo, material.extra, language), ""
    prefix, stop = _under_headings(material)
    return InfillPrompt(prefix, material.suffix, path, repo, language=language), stop


def _raw(material: Material, family: Family) -> tuple[Prompt, str]:
    stop = ""
    if material.extra and not family.file:
        prefix, stop = _under_headings(material)
        before: tuple[Piece, ...] = ()
    else:
        prefix = material.prefix
        before = tuple(_files(material, family))
        stop = family.file_stop if material.extra else ""
    in_prefix = before if family.files_in_prefix else ()
    filler: Filler = {
        "prefix": (*in_prefix, Piece(prefix)),
        # An empty suffix switches infilling off in several stacks.
        "suffix": material.suffix or "\n",
        "path": material.path or "",
        "language": material.language_id,
        "mode": "BLOCK" if material.block else "LINE",
    }
    pieces = render(family.fim or "{prefix}", family.specials, filler)
    suffix = "" if family.fim else material.suffix
    return RawPrompt(_merged((*(() if family.files_in_prefix else before), *pieces)), suffix), stop


def _files(material: Material, family: Family) -> Iterator[Piece]:
    """What the family writes before the hole: the repository, the other files, the name of this one."""
    yield from render(family.begin, family.specials, {})
    if not (material.extra or family.alone):
        return
    if material.repo:
        yield from render(family.repo, family.specials, {"repo": material.repo})
    for file in material.extra:
        text = file.text.removesuffix("\n") if "{content}\n" in family.file else file.text
        yield from render(family.file, family.specials, {"path": file.path, "content": text})
    if material.path or material.extra:
        yield from render(family.current, family.specials, {"path": material.path or _NAMELESS})


def _chat(material: Material, family: Family, sanitizer: Sanitizer) -> Built:
    """No stop strings: all that could end the answer may also begin it."""
    marker = hole_marker((material.prefix, material.suffix, *(file.text for file in material.extra)))
    prompt = chat_prompt(
        material.prefix,
        material.suffix,
        marker=marker,
        path=material.path or "",
        language=material.language_id,
        extra=material.extra,
        block=material.block,
    )
    reply = Reply(marker, material.prefix, prose=material.language_id in PROSE)
    return Built(prompt, (), family.terminators, sanitizer.broken, family.name, reply, CHAT_TOKENS)


def _under_headings(material: Material) -> tuple[str, str]:
    """The prefix with the other files before it, each under a comment that names it; and where an answer must stop."""
    before, after = comment_marks(material.language_id)
    blocks = [f"{before}{_HEADING}{file.path}{after}\n{file.text.rstrip()}\n\n" for file in material.extra]
    own = f"{before}{_HEADING}{material.path or _NAMELESS}{after}\n"
    return "".join((*blocks, own, material.prefix)), f"\n{before}{_HEADING}"


def _merged(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Neighbouring plain pieces joined, empty ones left out."""
    merged: list[Piece] = []
    for piece in pieces:
        if merged and not piece.special and not merged[-1].special:
            merged[-1] = Piece(merged[-1].text + piece.text)
        elif piece.text:
            merged.append(piece)
    return tuple(merged)
