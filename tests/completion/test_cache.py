"""The cache: where an answer fits, where it must not, and what is thrown out."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from backends.base import Finish
from completion.cache import Cache
from completion.types import RawCompletion, Window

SCOPE = ("backend", "file:///a")
ABOVE = "".join(f"line {n}\n" for n in range(400))


def raw(text: str) -> RawCompletion:
    return RawCompletion(text, Finish.STOP)


def found(cache: Cache, prefix: str, suffix: str = "", start: int = 0, scope: object = SCOPE) -> str | None:
    hit = cache.lookup(scope, Window(prefix, suffix, start))
    return None if hit is None else hit.raw.text[hit.typed :]


def test_hit_typed_through_and_misses() -> None:
    cache = Cache(10)
    cache.store(SCOPE, Window("x = ", "\n"), raw("foo(1)\nbar"))
    assert found(cache, "x = ", "\n") == "foo(1)\nbar"
    assert found(cache, "x = foo", "\n") == "(1)\nbar"
    assert found(cache, "x = foo(1)\nb", "\n") == "ar"
    assert found(cache, "x = foo(1)\nbar", "\n") is None
    assert found(cache, "x = fou", "\n") is None
    assert found(cache, "x =", "\n") is None
    assert found(cache, "y = ", "\n") is None
    assert found(cache, "x = ", ")\n") is None
    assert found(cache, "x = ", "\n", scope=("other", "file:///a")) is None


def test_only_white_space_left_is_a_miss_but_a_blank_answer_is_known() -> None:
    cache = Cache(10)
    cache.store(SCOPE, Window("x = ", ""), raw("1\n  "))
    assert found(cache, "x = 1") is None
    cache.store(SCOPE, Window("y = ", ""), raw(""))
    assert found(cache, "y = ") == ""


def test_the_window_may_have_moved() -> None:
    cache = Cache(10)
    cache.store(SCOPE, Window(ABOVE + "x = ", "", 50), raw("foo"))
    assert found(cache, ABOVE[800:] + "x = f", start=850) == "oo"
    assert found(cache, ABOVE.replace("399", "398") + "x = f", start=50) is None
    # The same end, but the document now begins where there was text before.
    assert found(cache, ABOVE[-300:] + "x = f", start=0) is None


def test_the_suffix_must_be_the_same_as_far_as_both_windows_show_it() -> None:
    cache = Cache(10)
    cache.store(SCOPE, Window("x = ", ABOVE[:900]), raw("foo"))
    assert found(cache, "x = f", ABOVE[:600]) == "oo"
    assert found(cache, "x = f", ABOVE[:1200]) == "oo"
    assert found(cache, "x = f", ABOVE[:850] + "y" + ABOVE[850:]) is None
    assert found(cache, "x = f", ABOVE[:200]) is None


def test_a_short_prefix_is_the_whole_text_before() -> None:
    cache = Cache(10)
    cache.store(SCOPE, Window("", ""), raw("import os"))
    assert found(cache, "imp") == "ort os"
    assert found(cache, "a\nimp") is None
    assert found(cache, "imp", start=7) is None


def test_the_newest_answer_wins() -> None:
    cache = Cache(10)
    cache.store(SCOPE, Window("x = ", ""), raw("foo bar"))
    cache.store(SCOPE, Window("x = foo", ""), raw("(1)"))
    assert found(cache, "x = foo") == "(1)"
    assert found(cache, "x = fo") == "o bar"
    cache.store(SCOPE, Window("x = ", ""), raw("other"))
    assert found(cache, "x = ") == "other"


def test_the_least_recently_used_goes_and_none_is_kept_if_none_may() -> None:
    cache = Cache(2)
    for n in range(2):
        cache.store(SCOPE, Window(f"{n} = ", ""), raw("answer"))
    assert found(cache, "0 = ") == "answer"
    cache.store(SCOPE, Window("2 = ", ""), raw("answer"))
    assert [found(cache, f"{n} = ") for n in range(3)] == ["answer", None, "answer"]
    cache.clear()
    assert found(cache, "0 = ") is None
    cache.store(SCOPE, Window("0 = ", ""), raw("answer"))
    cache.store(("b",), Window("0 = ", ""), raw("answer"))
    cache.store(("c",), Window("0 = ", ""), raw("answer"))
    assert [found(cache, "0 = ", scope=scope) for scope in (SCOPE, ("b",), ("c",))] == [None, "answer", "answer"]
    none = Cache(0)
    none.store(SCOPE, Window("0 = ", ""), raw("answer"))
    assert found(none, "0 = ") is None


@given(answer=st.text("ab \n", min_size=1, max_size=30), prefix=st.text("ab \n", max_size=200), data=st.data())
def test_every_position_within_the_answer_is_served(answer: str, prefix: str, data: st.DataObject) -> None:
    cache = Cache(5)
    cache.store(SCOPE, Window(prefix, ""), raw(answer))
    typed = data.draw(st.integers(0, len(answer) - 1))
    expected = answer[typed:] if typed == 0 or answer[typed:].strip() else None
    assert found(cache, prefix + answer[:typed]) == expected


def test_of_several_answers_that_fit_the_one_made_nearest_to_the_cursor_is_given() -> None:
    for places in itertools.permutations((0, 5, 9)):
        cache = Cache(10)
        for place in places:
            cache.store(SCOPE, Window("aaaa" * 20 + "b" * place, ""), raw(f"{'b' * (20 - place)}{place}"))
        assert found(cache, "aaaa" * 20 + "b" * 4) == "b" * 16 + "0"
        assert found(cache, "aaaa" * 20 + "b" * 8) == "b" * 12 + "5"
        assert found(cache, "aaaa" * 20 + "b" * 9) == "b" * 11 + "9"
        assert found(cache, "aaaa" * 20 + "b" * 12) == "b" * 8 + "9"
