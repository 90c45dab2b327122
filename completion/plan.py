"""What to ask for one request: budgets, window, extra files, prompt. Must not know how it is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from backends.base import Capabilities, ChatPrompt, File, InfillPrompt, Observer, Prompt, RawPrompt, Shape
from completion.clock import Clock
from completion.context import Gatherer
from completion.context.choice import Choice
from completion.context.window import Windows
from completion.multiline import Extent, extent
from completion.privacy import Redactor, StandIn, put_back
from completion.privacy.outgoing import around, outgoing
from completion.prompt import Built, Material, build
from completion.prompt.families import Family, choose
from completion.settings import CompletionSettings, EngineSettings
from completion.types import CompletionContext, ContextPiece, DocumentSnapshot, PlainText, Trigger, Window

# Tokens kept free for what a template adds to the texts.
_TEMPLATE = 32

# The window is never asked to be smaller than this, in tokens.
_LEAST = 16

# No entry of a menu takes the place of more, in code points.
_ENTRY = 10_000


@dataclass(frozen=True, slots=True)
class Plan:
    """`hole` is what the suggestion will replace; `max_tokens` the length of the answer; `automatic`: nobody asked."""

    hole: tuple[int, int]
    window: Window
    extra: tuple[File, ...]
    extent: Extent
    max_tokens: int
    capabilities: Capabilities
    language_id: str
    automatic: bool
    deleted: str = ""
    pieces: tuple[ContextPiece, ...] = ()  # what `extra` is


class Planner:
    def __init__(
        self,
        settings: EngineSettings,
        family: str,
        observer: Observer,
        ignored: Callable[[DocumentSnapshot], bool],
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._family = family
        self._observer = observer
        self._families: dict[str, Family] = {}  # by model name; a backend may learn it late
        self._windows = Windows()
        self._redactor = Redactor()
        self._gatherer = Gatherer(settings.context.sources, ignored, clock)
        self._ignored = ignored
        self._quoted: tuple[Choice, object, list[DocumentSnapshot]] = (Choice(), None, [])
        self._scale = 1.0

    def plan(self, context: CompletionContext, settings: CompletionSettings, capabilities: Capabilities) -> Plan:
        prompt_tokens, max_tokens = self._budgets(settings, capabilities)
        choice = self._gatherer.gather(*self._wanted(context, prompt_tokens, capabilities))
        # It may have been made a while ago.
        if ignored := [each for each in self._quotes(choice, context) if self._ignored(each)]:
            for document in ignored:
                self._gatherer.forget(document.uri)
            choice = self._gatherer.gather(*self._wanted(context, prompt_tokens, capabilities))
        # A larger window could show what was chosen of the same document.
        used = self._extra_tokens(prompt_tokens) if choice.own else choice.tokens
        window = self._cut(context, prompt_tokens, used)
        return Plan(
            replaced(context)[0],
            window,
            choice.files,
            extent(settings.multiline, window, context.document.language_id, len(context.document.text)),
            max_tokens,
            capabilities,
            context.document.language_id,
            context.trigger is Trigger.AUTOMATIC,
            context.deleted,
            choice.pieces,
        )

    def refresh(self, context: CompletionContext, settings: CompletionSettings, capabilities: Capabilities) -> None:
        """Choose anew what is shown beside the window, if that is due: up to 10 ms, so in a pause. `plan` keeps it."""
        prompt_tokens, _ = self._budgets(settings, capabilities)
        self._gatherer.refresh(*self._wanted(context, prompt_tokens, capabilities))

    def build(self, plan: Plan, context: CompletionContext, model: str) -> Built:
        """Raises BackendError(SETTINGS) if no prompt can be formed that the backend takes."""
        material = Material(
            prefix=plan.window.prefix,
            suffix=plan.window.suffix,
            language_id=context.document.language_id,
            path=context.document.path,
            repo=context.repo,
            extra=plan.extra,
            block=plan.extent is Extent.BLOCK,
        )
        stand_ins: tuple[StandIn, ...] = ()
        if self._redacts(plan.capabilities):
            edges = around(context.document.text, plan.window, plan.hole[1])
            material, stand_ins = outgoing(material, self._redactor, edges)
        built = build(material, self._family_of(model), plan.capabilities)
        if stand_ins:
            built = replace(built, mends={**built.mends, **put_back(stand_ins)}, stand_ins=stand_ins)
        return built

    def shrink(self) -> None:
        """Half as large prompts from now on: the guess of tokens was too low for this model."""
        self._scale /= 2

    def forget(self, uri: str) -> None:
        self._windows.forget(uri)
        self._gatherer.forget(uri)

    def _quotes(self, choice: Choice, context: CompletionContext) -> list[DocumentSnapshot]:
        """The other documents of which something was chosen."""
        if self._quoted[0] is not choice or self._quoted[1] is not context.others:
            others, root = {each.uri: each for each in context.others}, context.document.root
            documents = [
                others.get(uri) or DocumentSnapshot(uri, "", 0, PlainText(""), path, root)
                for uri, path in {each.uri: each.path for each in choice.snippets if each.uri}.items()
                if uri != context.document.uri
            ]
            self._quoted = (choice, context.others, documents)
        return self._quoted[2]

    def _wanted(
        self, context: CompletionContext, prompt_tokens: int, capabilities: Capabilities
    ) -> tuple[CompletionContext, int, Callable[[str], str], Callable[[], Window]]:
        """What the gatherer goes by."""
        tokens = self._extra_tokens(prompt_tokens)
        window = partial(self._cut, context, prompt_tokens, tokens, looking=True)
        return context, tokens, self._cleaner(capabilities), window

    def _cut(self, context: CompletionContext, prompt_tokens: int, used: int, *, looking: bool = False) -> Window:
        """The window where `used` tokens go to other pieces."""
        hole, inserted = replaced(context)
        return self._windows.cut(
            context.document,
            hole,
            inserted,
            tokens=max(_LEAST, prompt_tokens - _TEMPLATE - used),
            suffix_tokens=int(prompt_tokens * self._settings.context.suffix_share),
            looking=looking,
        )

    def _extra_tokens(self, prompt_tokens: int) -> int:
        return int(prompt_tokens * self._settings.context.extra_share)

    def _budgets(self, settings: CompletionSettings, capabilities: Capabilities) -> tuple[int, int]:
        """Tokens of the prompt and of the answer."""
        prompt, answer = settings.prompt_tokens, settings.max_tokens
        if capabilities.context_tokens is not None:
            answer = max(1, min(answer, capabilities.context_tokens // 2))
            prompt = min(prompt, capabilities.context_tokens - answer)
        return int(prompt * self._scale), answer

    def _cleaner(self, capabilities: Capabilities) -> Callable[[str], str]:
        return self._clean if self._redacts(capabilities) else _unchanged

    def _redacts(self, capabilities: Capabilities) -> bool:
        return capabilities.remote and self._settings.privacy.redact

    def _clean(self, text: str) -> str:
        return self._redactor.clean(text).text

    def _family_of(self, model: str) -> Family:
        if model not in self._families:
            self._families[model] = choose(self._family, model, self._observer)
        return self._families[model]


def replaced(context: CompletionContext) -> tuple[tuple[int, int], str]:
    """The range the suggestion takes the place of, and the text it begins with: those of the menu's chosen entry."""
    if context.selected is not None:
        return (context.selected.start, context.selected.end), context.selected.text
    offset = max(0, min(context.offset, len(context.document.text)))
    return (offset, offset), ""


def misplaced(context: CompletionContext) -> bool:
    """Whether the menu's chosen entry would take the place of text that is not around the cursor on its line."""
    if context.selected is None:
        return False
    start, end, text = context.selected.start, context.selected.end, context.document.text
    if not 0 <= start <= context.offset <= end <= len(text) or end - start > _ENTRY:
        return True
    taken = text.slice(start, end)
    return "\n" in taken or "\r" in taken


def shape_of(prompt: Prompt) -> Shape:
    match prompt:
        case RawPrompt():
            return Shape.RAW
        case InfillPrompt():
            return Shape.INFILL
        case _:
            return Shape.CHAT


def shown(prompt: Prompt) -> str:
    """A prompt as text, for traces that hold text."""
    match prompt:
        case RawPrompt():
            return prompt.text
        case InfillPrompt():
            files = "".join(f"[{file.path}]\n{file.text}\n" for file in prompt.extra)
            return f"{files}{prompt.prefix}[hole]{prompt.suffix}"
        case ChatPrompt():
            return "\n".join(f"[{message.role}]\n{message.content}" for message in prompt.messages)


def _unchanged(text: str) -> str:
    return text
