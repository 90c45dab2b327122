"""What the cells hold: several prompts with their answers, kept by recency. Knows tokens as numbers, no text.

A new prompt takes the sequence with the longest common beginning. What that sequence holds beyond is either cut off or,
if it may be wanted again (another place in the file, another file), left alone, and the common part is shared.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from backends.llama_worker.context import BATCH, Context, Outcome
from backends.llama_worker.errors import WorkerError
from backends.llama_worker.layout import Prompt

WORTH = 32  # tokens that are kept rather than evaluated again
NEAR = 32  # tokens between two places that count as one: typing, deleting, accepting
_SMALL = 32  # tokens of a batch at least: fewer are no quicker
GAP = 8  # positions left free before a text that is moved: moving it costs several decode steps, so not at every key
STALE = 32  # tokens that may change before a text that was moved is evaluated again; measured, see docs/architecture.md


@dataclass(frozen=True, slots=True)
class Move:
    """The text after the hole is kept although that before it has changed: it is moved to other positions."""

    common: int  # tokens that both begin with
    start: int  # where it stands
    size: int
    changed: int  # tokens before it that it does not know, or that are gone


@dataclass(slots=True, eq=False)
class Held:
    """A sequence. `tokens` are exactly the evaluated ones. From the token `gap_at` on positions are `gap` larger."""

    id: int
    tokens: list[int] = field(default_factory=list)
    mark: int = 0
    end: int = 0
    gap: int = 0
    gap_at: int = 0
    stale: int = 0  # tokens that have changed before the text after the hole since it was evaluated
    move: Move | None = None  # what `evaluate` begins with
    reused: int = 0  # tokens that the running request need not evaluate
    used: int = 0  # when, in requests
    users: int = 0  # requests that are at work with it: it is neither cut nor given up

    def span(self, count: int) -> int:
        """The position behind the first `count` tokens."""
        return count + self.gap if count > self.gap_at else count


class Sequences:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._held: list[Held] = []
        self._time = 0
        self._batch = BATCH  # tokens of a prompt evaluated at once

    def take(self, prompt: Prompt, *, exact: bool = False) -> Held:
        """The sequence to go on with, to be released. `evaluate` makes it hold the prompt.

        `exact`: there is time to evaluate again what was moved.
        """
        self._time += 1
        held = self._take(prompt, exact=exact)
        if held.move is None:
            held.mark, held.end, held.reused = prompt.mark, prompt.end, len(held.tokens)
        else:
            held.reused = held.move.common + held.move.size
        return held

    def release(self, held: Held) -> None:
        held.users -= 1

    def evaluate(self, held: Held, prompt: Prompt) -> Generator[None, None, bool]:
        """Evaluate the rest of a prompt; yields between batches. False: aborted. Raises WorkerError.

        What was evaluated of an aborted batch is lost. Where requests are cancelled more quickly than a batch is done,
        as by somebody who types on a slow machine, none would ever come further: then batches are small.
        """
        tokens = prompt.tokens
        if held.move is not None and not self._moved(held, held.move, prompt):
            return False
        while True:
            start, lost = len(held.tokens), self._context.aborted
            if not self.extend([(held, tokens[start : start + self._batch])]):
                if self._context.aborted > lost:
                    self._batch = max(_SMALL, self._batch // 2)
                return False
            if len(held.tokens) == len(tokens):
                self._batch = BATCH
                return True
            yield

    def fork(self, held: Held, count: int) -> Held:
        """Another sequence that holds the first `count` tokens. To be dropped, or released."""
        return self._share(held, count)

    def drop(self, held: Held) -> None:
        if held in self._held:  # after a failure of llama.cpp none is
            self._context.remove(held.id)
            self._held.remove(held)

    def adopt(self, held: Held, other: Held, count: int) -> None:
        """Let `held` hold the first `count` tokens of `other`, which begins as `held` does."""
        common = _common(held.tokens, other.tokens[:count])
        self.cut(held, common)
        if count > common:
            self._context.copy(other.id, held.id, held.span(common), other.span(count))
            held.tokens += other.tokens[common:count]

    def cut(self, held: Held, count: int) -> None:
        """Forget all but the first `count` tokens; all of them if the model cannot forget a part."""
        if count < len(held.tokens) and not self._context.remove(held.id, held.span(count)):
            self._context.remove(held.id)
            count = 0
        del held.tokens[count:]
        if count <= held.gap_at:
            held.gap = held.gap_at = 0

    def extend(self, parts: Sequence[tuple[Held, Sequence[int]]], *, last_only: bool = True) -> bool:
        """Evaluate more tokens of each sequence, at most BATCH together; the logits of the last ones are kept.

        The rows of the batch are in the order given. False: aborted, and nothing of them is held. Raises WorkerError,
        its kind "full" if there are not enough cells; then nothing has changed.
        """
        if any(held not in self._held for held, _ in parts):
            raise WorkerError("crashed", "another request has failed")
        batch = self._context.batch
        batch.clear()
        for held, tokens in parts:
            batch.add(held.id, held.span(len(held.tokens)), tokens, last_only=last_only)
        try:
            outcome = self._decode()
        except WorkerError as error:
            if error.kind == "crashed":  # the context is empty now
                self._held.clear()
            raise
        for held, tokens in parts:
            if outcome is Outcome.DONE:
                held.tokens += tokens
            else:
                self._tidy(held)
        return outcome is Outcome.DONE

    def _decode(self) -> Outcome:
        """Sequences give way, the oldest first, until there are cells enough."""
        while (outcome := self._context.decode()) is Outcome.FULL:
            oldest = self._oldest()
            if oldest is None:
                raise WorkerError("full", "the context is too small for this prompt and its answer")
            self.drop(oldest)
        return outcome

    def _tidy(self, held: Held) -> None:
        """Remove what an aborted batch has left."""
        if not self._context.remove(held.id, held.span(len(held.tokens))):
            self._context.remove(held.id)
            held.tokens.clear()

    def _oldest(self) -> Held | None:
        return min((h for h in self._held if not h.users), key=lambda h: h.used, default=None)

    def _moved(self, held: Held, move: Move, prompt: Prompt) -> bool:
        """New tokens stand before others that are kept, so they are evaluated in a sequence that ends there."""
        held.move, context = None, self._context
        fresh = prompt.tokens[move.common : prompt.mark]
        aside = self._share(held, move.common)
        try:
            if fresh and not self.extend([(aside, fresh)]):
                return False
            end = held.span(move.start + move.size)
            start = end - move.size
            context.remove(held.id, end)
            context.remove(held.id, move.common, start)
            by = prompt.mark - start + GAP if prompt.mark > start else 0
            if by:
                context.shift(held.id, start, end, by)
            context.copy(aside.id, held.id, move.common, prompt.mark)
        finally:
            self.drop(aside)
        held.gap, held.gap_at = start + by - prompt.mark, prompt.mark
        held.tokens = list(prompt.tokens[: prompt.mark + move.size])
        held.mark, held.end, held.stale = prompt.mark, prompt.end, held.stale + move.changed
        return True

    def _move(self, held: Held, common: int, prompt: Prompt) -> Move | None:
        """How the text after the hole can be kept; None: not, or it would not be worth it, or no longer be right."""
        if not self._context.shifts or held.users or common > min(held.mark, prompt.mark):
            return None
        changed = max(held.mark, prompt.mark) - common
        size = _common(held.tokens[held.mark : held.end], prompt.tokens[prompt.mark : prompt.end])
        if size < WORTH or changed > NEAR or held.stale + changed > STALE:
            return None
        whole = held.tokens[: held.mark + 1]
        if any(other.tokens[: held.mark + 1] == whole for other in self._held if other is not held):
            return None  # it may be the same cells, which have one position
        return Move(common, held.mark, size, changed)

    def _take(self, prompt: Prompt, *, exact: bool) -> Held:
        best, common = None, 0
        wanted = list(prompt.tokens[:-1])  # the last one is evaluated anyway: its logits are needed
        for held in self._held:
            count = _common(held.tokens, wanted)
            if self._context.whole and count < len(held.tokens):
                continue
            if count and (best is None or (count, held.used) > (common, best.used)):
                best, common = held, count
        if best is None:
            return self._new()
        if exact and best.stale:
            common = min(common, best.mark)
        best.move = None if exact else self._move(best, common, prompt)
        if best.move is not None:
            return self._use(best)
        beyond = len(best.tokens) - common
        elsewhere = max(best.mark, prompt.mark) - common > NEAR
        if best.users or (beyond >= WORTH and elsewhere):
            return self._share(best, common)
        if common <= best.mark:
            best.stale = 0
        self.cut(best, common)
        return self._use(best)

    def _share(self, held: Held, count: int) -> Held:
        held.users += 1  # it must not give way to its own copy
        new = self._new()
        held.users -= 1
        self._context.copy(held.id, new.id, *(() if self._context.whole else (0, held.span(count))))
        if count > held.gap_at:
            new.gap, new.gap_at = held.gap, held.gap_at
        new.tokens = held.tokens[:count]
        new.mark, new.end = held.mark, held.end
        new.stale = held.stale if count > held.mark else 0
        return new

    def _new(self) -> Held:
        """An empty sequence; the oldest gives way if there are too many."""
        if len(self._held) >= self._context.sequences:
            oldest = self._oldest()
            if oldest is None:
                raise WorkerError("full", "too many answers at once")
            self.drop(oldest)
        taken = {held.id for held in self._held}
        new = Held(next(number for number in range(self._context.sequences) if number not in taken))
        self._held.append(new)
        return self._use(new)

    def _use(self, held: Held) -> Held:
        held.used = self._time
        held.users += 1
        return held


def _common(held: Sequence[int], wanted: Sequence[int]) -> int:
    """How many tokens both begin with."""
    low, high = 0, min(len(held), len(wanted))
    if held[:high] == wanted[:high]:
        return high
    while low + 1 < high:  # slices are compared at the speed of C
        middle = (low + high) // 2
        low, high = (middle, high) if held[low:middle] == wanted[low:middle] else (low, middle)
    return low
