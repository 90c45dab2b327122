"""Similar places: what is found, where it is cut, and what is never shown."""

from __future__ import annotations

import pytest

from completion.context.base import Look, Snippet
from completion.context.similar import Similar, best
from tests.completion.context_tools import document, look

LOAD = '''def load_invoice(path, currency):
    """Read an invoice."""
    invoice = parse_invoice(path)
    invoice.currency = currency
    total = sum_positions(invoice)
    return invoice, total
'''
NOISE = "".join(f"noise_{number} = filler_{number}\n" for number in range(200))
BLOCK = f"{NOISE}\n\n{LOAD}\n\n{NOISE}"
HERE = "import invoices\n\ninvoice = parse_invoice(path)\ninvoice.currency = |\n"


def found(asked: Look, source: Similar | None = None) -> list[Snippet]:
    return sorted((source or Similar()).snippets(asked), key=lambda each: -each.score)


def test_the_most_similar_place_comes_first_and_is_cut_where_its_block_is() -> None:
    snippets = found(look(HERE, document("other.py", BLOCK), document("else.py", NOISE)))
    assert snippets[0].path == "other.py"
    assert snippets[0].text.startswith("def load_invoice")
    assert "return invoice, total\n" in snippets[0].text
    assert snippets[0].score > 2 * max([each.score for each in snippets if each.path == "else.py"], default=0.0)


def test_every_text_is_whole_lines_of_its_document() -> None:
    for snippet in found(look(HERE, document("a.py", BLOCK), document("b.py", BLOCK.replace("\n", "\r\n")))):
        first, end = snippet.lines
        assert snippet.text.rstrip("\n") == "\n".join(BLOCK.split("\n")[first:end]).rstrip("\n")
        assert 1 <= end - first <= 60


def test_the_same_language_counts_more_and_among_equals_the_one_viewed_last() -> None:
    others = [document("a.md", BLOCK, "markdown"), document("b.py", BLOCK), document("c.py", BLOCK)]
    order = [each.path for each in found(look(HERE, *others)) if "load_invoice" in each.text]
    assert order == ["b.py", "c.py", "a.md"]


def test_this_document_is_shown_where_it_is_out_of_sight_and_only_there() -> None:
    text = BLOCK + HERE
    height = BLOCK.count("\n")
    (first, *_) = found(look(text, shown=(height, height + 5)))
    assert first.path == "current.py"
    assert "load_invoice" in first.text
    assert all(end <= height for _, end in (each.lines for each in found(look(text, shown=(height, height + 5)))))
    assert found(look(text)) == [], "all of it is in sight"


def test_ignored_documents_are_not_read() -> None:
    secret = document("secret.py", BLOCK)
    assert found(look(HERE, secret, ignored=lambda each: each is secret)) == []
    assert found(look(HERE, secret)) != []


def test_a_document_that_is_no_longer_open_is_not_shown() -> None:
    source, other = Similar(), document("other.py", BLOCK)
    assert found(look(HERE, other), source) != []
    assert found(look(HERE), source) == []
    source.forget(other.uri)
    assert found(look(HERE, other), source) != []


def test_without_anything_in_common_there_is_nothing() -> None:
    assert found(look("zzz = |", document("a.py", NOISE))) == []
    assert found(look("|", document("a.py", NOISE))) == []


def test_what_is_late_is_left_out_and_found_the_next_time() -> None:
    source, other = Similar(), document("other.py", BLOCK)
    assert found(look(HERE, other, late=lambda: True), source) == []
    looks = 0
    while not found(look(HERE, other, late=lambda: True), source):
        looks += 1
        assert looks < 20
    assert looks > 1, "a part is read each time"


@pytest.mark.parametrize("place", [0, 40, 79])
def test_windows_are_as_long_as_they_must_be(place: int) -> None:
    lines = ["noise = 1\n"] * 80
    lines[place] = "wanted_name = 1\n"
    window = best(lines, {"wanted_name": 1.0})
    assert window is not None
    first, end = window
    assert first <= place < end
    assert 5 <= end - first <= 60


def test_a_long_run_of_what_is_wanted_is_cut() -> None:
    lines = [f"wanted_{number} = 1\n" for number in range(300)]
    window = best(lines, {f"wanted_{number}": 1.0 for number in range(100, 250)})
    assert window is not None
    assert window[1] - window[0] == 60
    assert window[0] >= 90
