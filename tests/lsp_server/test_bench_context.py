"""`midfill bench context`: what is counted, what it is compared with, and the command as a user runs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from backends.base import File
from completion.tokens import estimate_file
from completion.types import CompletionContext, DocumentSnapshot, PlainText
from lsp_server.bench import context_ways as ways
from lsp_server.bench.context_code import code_file, uses
from lsp_server.bench.context_data import DataError, Repository, repositories
from lsp_server.bench.context_places import TOKENS, Place, Sampler
from lsp_server.bench.context_rows import Result, row
from tests.lsp_server.commandline import midfill

SHOP = {
    "shop/prices.py": "TAX_RATE = 0.05\n\n\nclass PriceList:\n    def price_of(self, item):\n"
    "        self.asked_for = item\n        return 3\n",
    "shop/basket.py": "from shop.prices import PriceList\nimport shop.stock as stock\n\n\ndef total_of(items):\n"
    "    amount = sum(map(PriceList().price_of, items))\n    return amount * 2\n\n\n"
    "def order(items):\n    return stock.taken_out(items), items.count(3)\n",
    "shop/stock.py": "def taken_out(items):\n    return [*items]\n",
    "shop/__init__.py": "",
    "web/page.js": "import { basketSize } from './basket.js'\n\nexport function pageTitle() {\n  // basketSize\n"
    "  return `${basketSize(3)}`\n}\n",
    "web/basket.js": "export const basketSize = (n) => n\n",
    "web/more.js": "export function show() { return basketSize(4) + 1 }\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for path, text in SHOP.items():
        (tmp_path / "data" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / path).write_text(text, encoding="utf-8")
    return tmp_path / "data"


def read(folder: Path) -> Repository:
    (found,) = repositories([folder])
    return found


def test_what_a_python_file_defines_is_no_local_name_and_no_parameter() -> None:
    file = code_file("a.py", "python", SHOP["shop/prices.py"] + "def f(given):\n    local = given\n")
    assert file is not None
    assert set(file.defines) == {"TAX_RATE", "PriceList", "price_of", "asked_for", "f"}
    assert file.defines["asked_for"] == {5}
    assert code_file("a.py", "python", "def f(:\n") is None


def test_what_a_python_line_uses_is_code_of_the_repository() -> None:
    call = '    local_name = Thing(size=len("text")).append(\n        x.rest)  # why\n'
    file = code_file("a.py", "python", f"from a import (\n    Thing,\n)\ndef f(x):\n    'words in here'\n{call}")
    assert file is not None
    assert uses(file) == {5: {"Thing", "size"}, 6: {"rest"}}  # what Python brings along and short names are none
    assert file.imports == (("a", "Thing"),)


@pytest.mark.parametrize(
    ("language", "line", "defined"),
    [
        ("go", "func (s *Server) Listen(port int) error {", {"Listen"}),
        ("rust", "pub(crate) fn parse_all<T>(input: &str) -> T {", {"parse_all"}),
        ("rust", "pub struct Parser {", {"Parser"}),
        ("typescript", "export const makeStore = () => {", {"makeStore"}),
        ("typescript", "  async loadAll(names: string[]): Promise<void> {", {"loadAll"}),
        ("java", "    public static List<String> namesOf(Map<String, X> all) {", {"namesOf"}),
        ("c", "#define MAX_SIZE 3", {"MAX_SIZE"}),
        ("c", "static inline int ring_size(struct ring *r)", {"ring_size"}),
        ("c", "struct ring *ring_new(void)", {"ring_new"}),
        ("c", "struct ring {", {"ring"}),
        ("c", "struct ring one = {", set()),
        ("c", "    return ring_size(r);", set()),
        ("javascript", "  if (ready(x)) {", set()),
        ("javascript", "  // function gone() {", set()),
        ("go", '    x := "func quoted() {"', set()),
    ],
)
def test_definitions_of_other_languages(language: str, line: str, defined: set[str]) -> None:
    file = code_file("a", language, line + "\n")
    assert file is not None
    assert set(file.defines) == defined


def test_imports_lead_to_files(shop: Path) -> None:
    repository = read(shop)
    basket, page = repository.files["shop/basket.py"], repository.files["web/page.js"]
    assert [file.path for file in repository.imported(basket)] == ["shop/prices.py", "shop/stock.py"]
    assert [file.path for file in repository.imported(page)] == ["web/basket.js"]


def commit(folder: Path, *paths: str) -> None:
    git = ["git", "-C", str(folder), "-c", "user.name=Tester", "-c", "user.email=tester@example.invalid"]
    for step in (["init", "-q"], ["add", *paths], ["commit", "-qm", "one"]):
        subprocess.run([*git, *step], check=True)


def test_what_changed_in_one_commit_belongs_together(shop: Path) -> None:
    assert read(shop).together == {}
    commit(shop, "shop")
    commit(shop, "web")
    assert read(shop).together["web/page.js"] == {"web/basket.js": 1, "web/more.js": 1}


def test_what_a_commit_wrote_is_known_line_by_line(shop: Path) -> None:
    commit(shop, "shop", "web")
    stock, basket = shop / "shop/stock.py", shop / "shop/basket.py"
    before = stock.read_text(encoding="utf-8")
    for path in (stock, basket):
        path.write_text("added_one = 1\n" + path.read_text(encoding="utf-8") + "added_two = 2\n", encoding="utf-8")
    commit(shop, "shop")
    repository = read(shop)
    history, text = repository.history, repository.files["shop/stock.py"].text
    assert history.written_with("shop/basket.py", 1).keys() == repository.files.keys() - {"shop/basket.py"}
    (other, name), *more = history.written_with("shop/basket.py", 0).items()
    assert (other, more) == ("shop/stock.py", [])
    assert history.before(other, text, name) == before
    places = [place for seed in range(8) for place in Sampler(repository, seed).places(20)]
    opened = {other.opened is None for place in places for other in place.context.others}
    assert opened == {True, False}


def test_without_git_nothing_was_written_together(shop: Path) -> None:
    history = read(shop).history
    assert history.written_with("shop/basket.py", 0) == {}
    assert history.before("shop/stock.py", "text\n", "name") == "text\n"


def test_a_place_wants_what_is_defined_elsewhere_and_not_in_sight(shop: Path) -> None:
    repository = read(shop)
    places = Sampler(repository, 1).places(20)
    wanted = {(place.file.path, place.line): place.wanted for place in places}
    assert wanted == {
        ("shop/basket.py", 5): {"price_of"},  # PriceList stands in the import
        ("shop/basket.py", 10): {"taken_out"},
        ("web/more.js", 0): {"basketSize"},  # in page.js it stands in sight
    }
    for place in places:
        document, lines = place.context.document, place.file.lines
        lines[place.line] = ""
        assert document.text.slice(0, len(document.text)) == "\n".join(lines)
        assert place.context.offset == len("\n".join([*lines[: place.line], ""]))
        assert document.uri not in {other.uri for other in place.context.others}


def test_the_same_seed_draws_the_same(shop: Path) -> None:
    repository = read(shop)

    def drawn(seed: int) -> list[tuple[str, int, list[str]]]:
        places = Sampler(repository, seed).places(20)
        return [(p.file.path, p.line, [other.uri for other in p.context.others]) for p in places]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def place_of(shop: Path, before: str, *others: DocumentSnapshot) -> Place:
    repository = read(shop)
    document = DocumentSnapshot("file:///cursor.py", "python", 1, PlainText(before))
    context = CompletionContext(document, len(before), others=others)
    return Place(repository, repository.files["shop/basket.py"], 1, frozenset({"x"}), context)


def python(name: str, text: str, language: str = "python") -> DocumentSnapshot:
    return DocumentSnapshot(f"file:///{name}", language, 1, PlainText(text), name)


def test_windows_are_the_most_similar_sixty_lines_of_each_file(shop: Path) -> None:
    filler = [f"filler{number} = {number}" for number in range(200)]
    alike = [*filler[:120], "alpha = beta(gamma)", *filler[120:]]
    place = place_of(
        shop,
        "alpha = beta(gamma)\n",
        python("far.py", "\n".join(filler)),
        python("near.py", "\n".join(alike)),
        python("same.py", "alpha beta gamma\n"),
        python("same.js", "alpha beta gamma\n", "javascript"),
    )
    first, second = ways.windows(place)
    assert (first.path, first.text) == ("same.py", "alpha beta gamma\n")
    assert second.path == "near.py"
    assert second.text.split("\n") == alike[61:121]  # the first of those with the line in them


def test_heads_are_cut_to_whole_lines_that_fit(shop: Path) -> None:
    long = "x" * 29 + "\n"
    (shown,) = ways.head(place_of(shop, "", python("long.py", long * 200), python("later.py", "y")))
    assert shown.text == long * (len(shown.text) // len(long))
    assert TOKENS - 10 < estimate_file(shown.path, shown.text) <= TOKENS


def test_no_other_file_means_more_of_this_one(shop: Path) -> None:
    lines = [f"line_{number} = {number}" for number in range(1000)]
    (gained,) = ways.nothing(place_of(shop, "\n".join(lines) + "\n"))
    assert len(gained.text) == pytest.approx(TOKENS * 3, rel=0.35)  # a window begins a little later than it could
    assert ways.nothing(place_of(shop, "short\n")) == []


def test_ours_is_what_the_engine_would_show(shop: Path) -> None:
    place = place_of(shop, "", python("a.py", "a = 1\n"))
    assert File("a.py", "a = 1\n") in ways.Ours(["open_files"])(place)
    assert list(ways.Ours([])(place)) == []


def test_errors_go_by_files() -> None:
    alone = [Result(f"f{number}", 1, number % 2, 10) for number in range(100)]
    heaps = [Result(f"f{number % 2}", 1, number % 2, 10) for number in range(100)]
    assert row("a", alone, alone).share == row("b", heaps, heaps).share == 0.5
    assert row("a", alone, alone).error == pytest.approx(0.05, rel=0.02)
    assert row("b", heaps, heaps).error == pytest.approx(0.5)
    assert (row("a", alone, alone).ratio, row("a", alone, alone).ratio_error) == (1.0, 0.0)


def test_nothing_found_by_the_other_gives_no_ratio() -> None:
    nothing = [Result("f", 1, 0, 0)]
    assert row("a", [Result("f", 1, 1, 9)], nothing).ratio is None


def test_json(shop: Path, tmp_path: Path) -> None:
    done = midfill("bench", "context", "--data", str(shop), "--limit", "8", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["places"], told["identifiers"], len(told["held_out"])) == (3, 3, 3)
    assert set(told["groups"]) == {"all", "python", "javascript"}
    rows = {each["name"]: each for each in told["groups"]["all"]}
    assert rows["all open files, whole"]["share"] == 1
    assert rows["no other file"]["share"] == 0
    assert rows["60-line Jaccard windows"]["ratio"] == 1
    held = {(each["path"], each["line"]): each for each in told["held_out"]}
    assert held["shop/basket.py", 11]["wanted"] == ["taken_out"]
    assert held["shop/basket.py", 11]["found"]["all open files, whole"] == ["taken_out"]
    (figure,) = told["figures"]
    assert (figure["bar"], figure["value"]) == (1.3, rows["ours"]["ratio"])


def test_table(shop: Path, tmp_path: Path) -> None:
    done = midfill("bench", "context", "--data", str(shop), "--limit", "8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    head, heads, first, *_ = done.stdout.split("\n")
    assert head == "3 identifiers that 3 held-out lines need from other files, 1,000 tokens shown"
    assert heads.split()[0] == "found"
    assert first.split()[:5] == ["all", "no", "other", "file", "0.0%"]
    assert "≥ 1.3" in done.stdout


def test_says_what_is_wrong_with_the_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        repositories([tmp_path / "none"])
    (tmp_path / "one.py").write_text("alone = 1\n", encoding="utf-8")
    done = midfill("bench", "context", "--data", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 2
    assert "needs what another file defines" in done.stderr


def test_a_folder_of_checkouts_names_each(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "a.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "notes").mkdir()
    assert [each.name for each in repositories([tmp_path])] == ["one", "two"]
    assert read(tmp_path / "one").files.keys() == {"a.py"}
