"""What a client asks, and the prompt it becomes for one backend. Must not know HTTP, nor who answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from backends.base import BackendError, Capabilities, ErrorKind, File, Piece, RawPrompt, Sampling, Shape
from completion.chat_reply import DropEcho, Reply, TakeCode
from completion.privacy import Redactor, StandIn, put_back, redact
from completion.privacy.outgoing import outgoing
from completion.prompt import Built, Material, build
from completion.prompt.families import BY_NAME, Family
from completion.stopping import LINE_ENDS, CutTerminators, Replace, Step

# The form in which a hole is shown where the model's own is not known. What is formed is read again here.
_NEUTRAL = BY_NAME["starcoder"]
_HOLES = re.compile(r"(\{prefix\}|\{suffix\})")
_FIELD = re.compile(r"\{[a-z]+\}")
_NOTHING_SAID = Sampling()
_NO_FORM = "The model's family has no form for a hole."


@dataclass(frozen=True, slots=True)
class Question:
    """`suffix` None: `prefix` is to be continued. `verbatim`: it may hold the model's special tokens, meant as such."""

    model: str
    prefix: str
    suffix: str | None = None
    verbatim: bool = False
    files: tuple[File, ...] = ()  # most relevant last
    repo: str | None = None
    path: str | None = None
    language: str = ""  # id as LSP has it; empty: unknown
    max_tokens: int | None = None  # None: as long as suggestions are
    sampling: Sampling = _NOTHING_SAID  # without a temperature: the one set for suggestions
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Formed:
    """A prompt for one backend, with what is needed to read its answer."""

    built: Built
    verbatim: bool
    crlf: bool  # the question's lines end so, and so will the answer's


def form(question: Question, family: Family, capabilities: Capabilities, *, blank_keys: bool) -> Formed:
    """Raises BackendError: INFILL_UNSUPPORTED if there is a suffix that the model could not be shown, SETTINGS."""
    if question.verbatim:
        hole = _hole_in(question.prefix, _template(family, capabilities))
        # A template is as good as it is where it reaches the tokenizer as it is; elsewhere the hole is better shown.
        literal = bool(family.fim) and (capabilities.literal_text or Shape.INFILL not in capabilities.shapes)
        if Shape.RAW in capabilities.shapes and (hole is None or literal):
            return _as_it_is(question, family, capabilities, blank_keys=blank_keys)
        if hole is not None:
            question = replace(question, prefix=hole[0], suffix=hole[1])
    if question.suffix is None:
        family, capabilities = continuing(family), _raw_if_taken(capabilities)
    elif not family.fim:
        capabilities = replace(capabilities, shapes=capabilities.shapes - {Shape.RAW})
        if not capabilities.shapes:
            raise BackendError(ErrorKind.INFILL_UNSUPPORTED, _NO_FORM)
    crlf = "\r\n" in question.prefix + (question.suffix or "")
    material = _material(question)
    stand_ins: tuple[StandIn, ...] = ()
    if blank_keys:
        material, stand_ins = _blanked(material)
    built = build(material, family, capabilities)
    if question.verbatim:  # what its writer has made harmless is for its writer to mend
        built = replace(built, mends={})
    if stand_ins:
        built = replace(built, mends={**built.mends, **put_back(stand_ins)})
    if question.suffix is not None and built.reply and not question.language:
        built = replace(built, reply=replace(built.reply, prose=False))  # infilling is of code
    return Formed(built, False, crlf)


def shown_prompt(question: Question, family: Family, capabilities: Capabilities) -> str:
    """The prompt as one text, which `form` understands as it is. Raises BackendError(INFILL_UNSUPPORTED)."""
    template = _template(family, capabilities)
    if question.suffix is None:
        shown = continuing(family)
    elif template:
        shown = family if family.fim else _NEUTRAL
    else:
        raise BackendError(ErrorKind.INFILL_UNSUPPORTED, _NO_FORM)
    raw = replace(capabilities, shapes=frozenset({Shape.RAW}), literal_text=False, prefers_template=True)
    prompt = build(_material(question), shown, raw).prompt
    assert isinstance(prompt, RawPrompt)
    return prompt.text


def steps_of(formed: Formed, stop: tuple[str, ...]) -> tuple[Step, ...]:
    """What cleans the answer: it ends at a terminator or a stop string, and of a chat's reply only the code is left."""
    built, reply = formed.built, formed.built.reply
    chat: tuple[Step, ...] = ()
    if reply:
        mark = Replace({reply.marker: ""} if reply.marker else {})
        chat = (TakeCode(prose=reply.prose), mark, DropEcho(reply.prefix))
    if formed.verbatim:
        return CutTerminators(built.terminators), *chat, CutTerminators(stop)
    cut = CutTerminators(text.replace("\r\n", "\n") for text in stop)
    back = (Replace({"\n": "\r\n"}),) if formed.crlf else ()
    # First cut, then mend: a mended token is the user's own.
    return Replace(LINE_ENDS), CutTerminators(built.terminators), *chat, Replace(built.mends), cut, *back


@lru_cache(maxsize=64)
def continuing(family: Family) -> Family:
    """The same model, asked for no more than what follows."""
    return replace(family, fim="", others=family.specials)


def _as_it_is(question: Question, family: Family, capabilities: Capabilities, *, blank_keys: bool) -> Formed:
    text = redact(question.prefix) if blank_keys else question.prefix
    specials = frozenset(family.specials)
    pieces = tuple(Piece(part, part in specials) for part in _tokens(family).split(text) if part)
    reply = Reply("", question.prefix, prose=True) if capabilities.chats else None
    built = Built(RawPrompt(pieces), family.stops, family.terminators, {}, family.name, reply)
    return Formed(built, True, False)


@lru_cache(maxsize=64)
def _tokens(family: Family) -> re.Pattern[str]:
    longest_first = sorted(family.specials, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first))})")


def _material(question: Question) -> Material:
    return Material(
        prefix=_lines(question.prefix),
        suffix=_lines(question.suffix or ""),
        language_id=question.language,
        path=question.path,
        repo=question.repo,
        extra=tuple(File(file.path, _lines(file.text)) for file in question.files),
    )


def _blanked(material: Material) -> tuple[Material, tuple[StandIn, ...]]:
    """With stand-ins for secrets, also in names."""
    redactor = Redactor()
    extra = tuple(replace(file, text=redactor.clean(file.text).text) for file in material.extra)
    return outgoing(replace(material, extra=extra), redactor, ("", ""))


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _raw_if_taken(capabilities: Capabilities) -> Capabilities:
    if Shape.RAW in capabilities.shapes:
        return replace(capabilities, shapes=frozenset({Shape.RAW}))
    return capabilities


def _template(family: Family, capabilities: Capabilities) -> str:
    """The form of prompts with a hole; empty if the model cannot be shown one."""
    return family.fim or (_NEUTRAL.fim if capabilities.shapes & {Shape.INFILL, Shape.CHAT} else "")


def _hole_in(prompt: str, template: str) -> tuple[str, str] | None:
    """Prefix and suffix of a prompt in this form. What stands before it, such as other files, goes with the prefix.

    Takes time that grows with the prompt alone, whatever it holds.
    """
    if not template:
        return None
    before, first, between, second, after = _HOLES.split(template)
    before = _FIELD.split(before)[-1]  # what stands between names of paths and languages is not looked at
    start, end = prompt.find(before), len(prompt) - len(after)
    middle = prompt.find(between, start + len(before), end) if start >= 0 and prompt.endswith(after) else -1
    if middle < 0:
        return None
    texts = {first: prompt[start + len(before) : middle], second: prompt[middle + len(between) : end]}
    suffix = texts["{suffix}"]
    return prompt[:start] + texts["{prefix}"], "" if suffix == "\n" else suffix  # an empty one was written so
