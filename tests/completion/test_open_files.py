"""Extra context from open files: order, budget, what is left out, and that it stays the same."""

from __future__ import annotations

from collections.abc import Callable

from backends.base import File
from completion.context import Gatherer
from completion.privacy import Ignored
from completion.tokens import estimate_file
from completion.types import CompletionContext, DocumentSnapshot, PlainText, Window
from tests.completion.fake_clock import FakeClock


def other(name: str, text: str, language: str = "python", version: int = 1) -> DocumentSnapshot:
    return DocumentSnapshot(f"file:///w/{name}", language, version, PlainText(text), name)


def context(*others: DocumentSnapshot, text: str = "") -> CompletionContext:
    return CompletionContext(other("current.py", text), 0, others=others)


def same(text: str) -> str:
    return text


def window() -> Window:
    return Window("", "")


def gathered(
    gatherer: Gatherer, asked: CompletionContext, tokens: int = 500, clean: Callable[[str], str] = same
) -> tuple[File, ...]:
    return gatherer.gather(asked, tokens, clean, window).files


def names(gatherer: Gatherer, asked: CompletionContext, tokens: int = 500) -> list[str]:
    return [file.path for file in gathered(gatherer, asked, tokens)]


def gatherer(*ignore: str) -> Gatherer:
    return Gatherer(("open_files",), Ignored(ignore), FakeClock())


def test_most_relevant_last_and_same_language_before_others() -> None:
    asked = context(other("new.md", "n", "markdown"), other("new.py", "n"), other("old.py", "o"))
    assert names(gatherer(), asked) == ["new.md", "old.py", "new.py"]


def test_current_ignored_and_blank_files_are_left_out() -> None:
    asked = context(other("current.py", "x"), other(".env", "x"), other("blank.py", " \n"), other("a.py", "x"))
    assert names(gatherer(".env"), asked) == ["a.py"]


def test_a_file_too_long_is_cut_after_its_first_lines() -> None:
    long = "".join(f"line {n}\r\n" for n in range(1000))
    (file,) = gathered(gatherer(), context(other("a.py", long)), 100)
    assert file.text.startswith("line 0\nline 1\n")
    assert file.text.endswith("\n")
    assert "\r" not in file.text
    assert 60 <= estimate_file(file.path, file.text) <= 100


def test_the_budget_holds_for_all_together_and_no_scraps_are_shown() -> None:
    files = gathered(gatherer(), context(*(other(f"{n}.py", f"x{n}000 = 1\n" * 30) for n in range(20))), 200)
    assert 100 < sum(estimate_file(file.path, file.text) for file in files) <= 200
    assert [file.path for file in files] == ["1.py", "0.py"] if len(files) == 2 else ["2.py", "1.py", "0.py"]
    assert gathered(gatherer(), context(other("a.py", "x" * 5000)), 500) == ()  # one giant line has no head
    assert gathered(gatherer(), context(other("a.py", "x\n")), 10) == ()


def test_texts_are_cleaned_before_they_are_measured() -> None:
    (file,) = gathered(gatherer(), context(other("a.py", "secret")), 500, lambda text: text.replace("secret", "xxxxxx"))
    assert file.text == "xxxxxx"


def test_without_sources_there_is_nothing() -> None:
    assert gathered(Gatherer((), Ignored(())), context(other("a.py", "a"))) == ()
