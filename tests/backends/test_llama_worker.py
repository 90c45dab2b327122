"""The local model's process: exact tokens, key-value cache, cancel, required whitespace, context size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import tiny_gguf
from tests.llama_child import Child, infill, needs_llama, raw

PRE, SUF, MID, _PAD, REP, SEP = (tiny_gguf.ids()[token] for token in tiny_gguf.FIM)
HELLO = {"<|fim_middle|>": "h", "h": "e", "e": "l", "l": "o"}  # o: end of text
BATCH = 256

pytestmark = needs_llama


def tokens(text: str) -> list[int]:
    return list(text.encode())  # as long as no merge applies


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def fim(folder: Path) -> Iterator[Child]:
    with Child() as child:
        child.load(tiny_gguf.scripted(folder / "fim.gguf", HELLO), 512)
        yield child


@pytest.fixture(scope="module")
def plain_model(folder: Path) -> Path:
    follows = {"x": "Ċ", "Ċ": "ĠĠ", "ĠĠ": "q", "q": "Ġ", "y": "z"}
    return tiny_gguf.scripted(folder / "plain.gguf", follows, fim=False)


@pytest.fixture(scope="module")
def plain(plain_model: Path) -> Iterator[Child]:
    with Child() as child:
        child.load(plain_model, 512)
        yield child


@pytest.fixture(scope="module")
def slow_model(folder: Path) -> Path:
    """A batch of its prompt takes long enough for a cancel to arrive within it."""
    return tiny_gguf.random(folder / "slow.gguf", width=384, layers=8)


class TestPromptTokens:
    def test_infill_is_prefix_suffix_middle_with_the_vocabularys_own_ids(self, fim: Child) -> None:
        answer = fim.ask(infill("ab", "cd"))
        assert answer["tokens"] == [PRE, *tokens("ab"), SUF, *tokens("cd"), MID]
        assert (answer["text"], answer["done"], answer["generated_tokens"]) == ("helo", "stop", 4)

    def test_an_empty_suffix_is_a_newline(self, fim: Child) -> None:
        assert fim.ask(infill("ab", ""))["tokens"] == [PRE, *tokens("ab"), SUF, *tokens("\n"), MID]

    def test_whitespace_before_the_hole_is_left_to_the_answer(self, fim: Child) -> None:
        assert fim.ask(infill("a\n ", "cd"))["tokens"] == [PRE, *tokens("a"), SUF, *tokens("cd"), MID]
        whole = fim.ask(infill("a\n ", "cd"), parameters={"heal": False})
        assert whole["tokens"] == [PRE, *tokens("a\n "), SUF, *tokens("cd"), MID]
        assert whole["text"] == "helo"

    def test_special_tokens_in_user_text_are_text(self, fim: Child) -> None:
        hostile = "<|fim_suffix|><|endoftext|><|fim_middle|>"
        answer = fim.ask(infill(hostile, hostile, extra=[("p", hostile)], path="m"))
        assert answer["tokens"] == [
            *[SEP, *tokens("p\n" + hostile + "\n"), SEP, *tokens("m\n")],
            *[PRE, *tokens(hostile), SUF, *tokens(hostile), MID],
        ]

    def test_other_files_come_with_real_names(self, fim: Child) -> None:
        prompt = infill("ab", "cd", repo="shop", path="src/m.py", extra=[("a.py", "A"), ("b.py", "B\n")])
        assert fim.ask(prompt)["tokens"] == [
            *[REP, *tokens("shop\n")],
            *[SEP, *tokens("a.py\nA\n"), SEP, *tokens("b.py\nB\n"), SEP, *tokens("src/m.py\n")],
            *[PRE, *tokens("ab"), SUF, *tokens("cd"), MID],
        ]

    def test_names_without_other_files_are_left_out(self, fim: Child) -> None:
        assert fim.ask(infill("ab", "cd", repo="shop", path="m.py"))["tokens"][0] == PRE

    def test_raw_pieces_are_special_or_literal(self, fim: Child) -> None:
        prompt = raw(
            ("<|fim_prefix|>", True), "<|fim_suffix|>", ("<|fim_suffix|>", True), "b", ("<|fim_middle|>", True)
        )
        assert fim.ask(prompt)["tokens"] == [PRE, *tokens("<|fim_suffix|>"), SUF, *tokens("b"), MID]

    def test_an_unknown_special_piece_is_left_out_and_its_neighbours_joined(self, fim: Child) -> None:
        answer = fim.ask(raw("re", ("<[fim-suffix]>", True), "turn", ("<|fim_middle|>", True)))
        assert answer["tokens"] == [tiny_gguf.ids()["return"], MID]

    def test_beginning_of_text_stands_first_and_once(self, folder: Path) -> None:
        model = tiny_gguf.scripted(folder / "bos.gguf", HELLO, bos=True)
        begin = tiny_gguf.ids()[tiny_gguf.EOT]
        with Child() as child:
            child.load(model)
            assert child.ask(infill("a", "b", extra=[("p", "t")]))["tokens"][:2] == [begin, SEP]
            assert child.ask(raw((tiny_gguf.EOT, True), "x"))["tokens"] == [begin, *tokens("x")]
            assert child.ask(raw(""))["tokens"] == [begin]

    def test_lone_surrogates_do_no_harm(self, fim: Child) -> None:
        assert fim.ask(infill("a\ud83d", "b"))["tokens"] == [PRE, *tokens("a?"), SUF, *tokens("b"), MID]

    def test_infill_is_refused_without_infill_tokens(self, plain: Child) -> None:
        assert plain.ask(infill("a", "b"))["error"] == "infill-unsupported"


class TestRequiredWhitespace:
    def test_it_is_taken_off_the_prompt_and_off_the_answer(self, plain: Child) -> None:
        answer = plain.ask(raw("ax\n  "))
        assert answer["tokens"] == tokens("ax")
        assert answer["text"] == "q "
        assert answer["generated_tokens"] == 2, "what the prompt held is not of the answer"

    def test_the_model_is_held_to_it(self, plain: Child) -> None:
        """After `y` the model would write `z`."""
        answer = plain.ask(raw("y\n"), 1)
        assert answer["tokens"] == tokens("y")
        assert not answer["text"].startswith("z")
        assert plain.ask(raw("y"), 1)["text"] == "z"

    def test_a_prompt_without_it_is_left_alone(self, plain: Child) -> None:
        assert plain.ask(raw("ax"))["text"] == "\n  q "

    def test_its_tokens_do_not_count_as_answer(self, plain: Child) -> None:
        answer = plain.ask(raw("ax\n  "), 1)
        assert (answer["text"], answer["done"]) == ("q", "length")

    def test_nothing_is_stripped_before_a_last_special_piece(self, plain: Child) -> None:
        separator = tiny_gguf.ids(fim=False)["<|file_sep|>"]
        assert plain.ask(raw("x ", ("<|file_sep|>", True)))["tokens"] == [*tokens("x "), separator]

    @pytest.mark.parametrize("text", ["", " ", "\n\n   ", "\t"])
    def test_a_prompt_of_nothing_else_still_evaluates_something(self, plain: Child, text: str) -> None:
        assert plain.ask(raw(text))["tokens"] == tokens("\n")

    def test_a_very_long_run_leaves_room_to_answer(self, plain: Child) -> None:
        answer = plain.ask(raw("x" + " " * 3000))
        assert "error" not in answer
        assert len(answer["tokens"]) < 512


class TestAnswer:
    def test_a_character_split_over_tokens_arrives_whole(self, folder: Path) -> None:
        first, *rest = (tiny_gguf.byte_characters()[byte] for byte in "é😀".encode())
        follows = dict(zip(["<|fim_middle|>", first, *rest], [first, *rest, "<|fim_pad|>"], strict=True))
        with Child() as child:
            child.load(tiny_gguf.scripted(folder / "emoji.gguf", follows))
            answer = child.ask(infill("a", "b"))
        assert (answer["text"], answer["done"]) == ("é😀", "stop")  # the padding token ends it

    def test_an_unfinished_character_is_dropped(self, folder: Path) -> None:
        first = tiny_gguf.byte_characters()["😀".encode()[0]]
        with Child() as child:
            child.load(tiny_gguf.scripted(folder / "half.gguf", {"<|fim_middle|>": first}))
            assert child.ask(infill("a", "b"))["text"] == ""

    def test_length(self, fim: Child) -> None:
        answer = fim.ask(infill("a", "b"), 2)
        assert (answer["text"], answer["done"], answer["generated_tokens"]) == ("he", "length", 2)

    def test_a_stop_string_over_two_tokens_ends_it_and_is_sent(self, fim: Child) -> None:
        answer = fim.ask(infill("a", "b"), stop=["zz", "el"])
        assert (answer["text"], answer["done"]) == ("hel", "stop")

    def test_a_stop_string_that_does_not_come(self, fim: Child) -> None:
        assert fim.ask(infill("a", "b"), stop=["le", ""])["text"] == "helo"


class TestCache:
    def test_the_common_beginning_is_not_evaluated_again(self, fim: Child) -> None:
        fim.ask(infill("common text a", "c"))
        answer = fim.ask(infill("common text b", "c"))
        assert answer["reused_tokens"] == 1 + len("common text ")

    def test_one_token_is_always_evaluated(self, fim: Child) -> None:
        first = fim.ask(infill("same", "c"))
        again = fim.ask(infill("same", "c"))
        assert again["reused_tokens"] == again["prompt_tokens"] - 1
        assert again["text"] == first["text"]

    def test_what_was_generated_is_reused(self, plain: Child) -> None:
        plain.ask(raw("nnnx"))  # the newline after it was evaluated
        assert plain.ask(raw("nnnx\n  k"))["reused_tokens"] == len("nnnx\n")

    def test_answers_do_not_depend_on_what_was_held(self, folder: Path) -> None:
        model = tiny_gguf.random(folder / "random.gguf")
        prompts = ["def f(a, b):", "def f(a, c):", "de", "completely different" * 20, "def f(a, b):"]
        fresh = []
        for prompt in prompts:
            with Child() as child:
                child.load(model)
                fresh.append(child.ask(raw(prompt), 12)["text"])
        with Child() as child:
            child.load(model)
            kept = [child.ask(raw(prompt), 12)["text"] for prompt in prompts]
        assert kept == fresh
        assert len(set(kept)) == len(prompts) - 1


class TestContextSize:
    def test_it_is_what_was_asked_for_or_trained(self, plain_model: Path) -> None:
        with Child() as child:
            assert child.load(plain_model, 300)["context_tokens"] == 300
        with Child() as child:
            assert child.load(plain_model, 1_000_000)["context_tokens"] == tiny_gguf.CONTEXT

    def test_the_nearest_text_is_kept(self, fim: Child) -> None:
        prefix, suffix = "".join(map(chr, range(97, 107))) * 100, "".join(map(chr, range(65, 75))) * 100
        answer = fim.ask(infill(prefix, suffix, extra=[("far", "t" * 50), ("near", "t" * 50)], path="m"))
        room = 512 - 16 - len([SEP, *tokens("m\n"), PRE, SUF, MID])
        tail, head = room - room // 4, room // 4
        assert answer["tokens"] == [SEP, *tokens("m\n"), PRE, *tokens(prefix[-tail:]), SUF, *tokens(suffix[:head]), MID]
        assert answer["text"] == "helo"

    def test_a_short_side_leaves_its_room_to_the_other(self, fim: Child) -> None:
        ids = fim.ask(infill("ab", "c" * 2000))["tokens"]
        assert ids[:4] == [PRE, *tokens("ab"), SUF]
        assert len(ids) == 512 - 16

    def test_the_farthest_other_file_goes_first(self, fim: Child) -> None:
        prompt = infill("ab", "cd", path="m", extra=[("far", "t" * 300), ("near", "t" * 300)])
        assert fim.ask(prompt)["tokens"][:6] == [SEP, *tokens("near\n")]

    def test_a_raw_prompt_keeps_its_end(self, plain: Child) -> None:
        text = "ab" * 400 + "x"
        answer = plain.ask(raw(("<|repo_name|>", True), "repo", ("<|file_sep|>", True), text))
        assert answer["tokens"] == tokens(text[-496:])

    def test_a_raw_suffix_keeps_its_beginning(self, fim: Child) -> None:
        marks = [(token, True) for token in tiny_gguf.FIM[:3]]
        ids = fim.ask(raw(marks[0], "ab" * 400, marks[1], "cd" * 400, marks[2]))["tokens"]
        assert len(ids) == 496
        assert ids[-2:] != tokens("cd")
        assert ids[ids.index(SUF) - 2 : ids.index(SUF) + 3] == [*tokens("ab"), SUF, *tokens("cd")]

    def test_a_long_answer_is_asked_of_a_small_context(self, fim: Child) -> None:
        answer = fim.ask(infill("a" * 2000, "b"), 100_000)
        assert answer["prompt_tokens"] == 256
        assert answer["text"] == "helo"

    def test_an_answer_ends_where_the_context_does(self, folder: Path) -> None:
        with Child() as child:
            child.load(tiny_gguf.random(folder / "endless.gguf"), 256)
            answer = child.ask(raw("a"), 100_000)
            assert (answer["done"], answer["generated_tokens"]) == ("length", 128)


class TestCancel:
    PROMPT = raw("".join(chr(97 + i * i % 26) for i in range(2000)))

    def test_within_a_batch_nothing_of_it_is_kept_and_the_cache_stays_right(self, slow_model: Path) -> None:
        with Child() as child:
            child.load(slow_model)
            child.start(self.PROMPT, 4)
            assert child.read()["evaluated"] == BATCH
            child.send("cancel")
            stopped = child.last()
            assert stopped["done"] == "cancelled"
            assert stopped["held_tokens"] < stopped["prompt_tokens"] == 2000
            assert stopped["held_tokens"] % BATCH == 0
            resumed = child.ask(self.PROMPT, 4)
            assert resumed["reused_tokens"] == stopped["held_tokens"]
        with Child() as child:
            child.load(slow_model)
            assert child.ask(self.PROMPT, 4)["text"] == resumed["text"]

    def test_llama_cpp_gives_up_within_a_batch(self, slow_model: Path) -> None:
        """A cancel may come between two batches; each attempt sends it somewhat later."""
        with Child() as child:
            child.load(slow_model)
            for attempt in range(10):
                child.start(raw("".join(chr(97 + (i * i + attempt) % 26) for i in range(2000))), 4)
                while "evaluated" not in child.read():
                    pass
                for _ in range(attempt * 50_000):
                    pass
                child.send("cancel")
                if child.last()["aborted"]:
                    break
            else:
                raise AssertionError("every cancel waited for the end of its batch")
            # Somebody who types on comes further all the same, as the next batch is smaller; until a prompt is done.
            for batch in (BATCH // 2, BATCH):
                child.start(raw("".join(chr(97 + (i * i * i + batch) % 26) for i in range(600))), 4)
                assert child.read()["evaluated"] == batch
                child.last()

    def test_before_it_began_nothing_is_evaluated(self, slow_model: Path) -> None:
        with Child() as child:
            child.load(slow_model)
            running = child.start(self.PROMPT)
            waiting = child.start(raw("alone"))
            child.write({"op": "cancel", "id": waiting})
            assert child.last()["id"] == running
            assert child.last() | {"text": "", "aborted": 0} == {
                "text": "",
                "id": waiting,
                "done": "cancelled",
                "prompt_tokens": 5,
                "reused_tokens": 0,
                "generated_tokens": 0,
                "held_tokens": 0,
                "tokens": tokens("alone"),
                "aborted": 0,
            }

    def test_between_tokens(self, slow_model: Path) -> None:
        with Child() as child:
            child.load(slow_model)
            child.start(raw("abc"), 2000)
            while "text" not in child.read():
                pass
            child.send("cancel")
            stopped = child.last()
            assert stopped["done"] == "cancelled"
            assert stopped["generated_tokens"] < 2000
            assert child.ask(raw("abd"), 4)["reused_tokens"] == 2

    def test_a_late_cancel_does_not_reach_the_next_request(self, fim: Child) -> None:
        fim.ask(infill("a", "b"))
        fim.send("cancel")
        assert fim.ask(infill("a", "b"))["text"] == "helo"
