"""What each model family's prompts look like: data, one row per family. Must not know services or settings.

`{prefix}` and `{suffix}` are the texts around the hole, `{path}` and `{content}` a file, `{repo}` the repository,
`{language}` the language's name, `{mode}` is BLOCK or LINE. All else stands for itself. Bars and blanks matter: several
families differ in nothing else, and a wrong one gives plausible but poor text, never an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from backends.base import Observer

# What a special token looks like in the rows below.
_TOKEN = re.compile(r"<\|[^|<>]+\|>|<｜[^｜]+｜>|<\[[^\]]+\]>|</?[A-Za-z_-]+>|\[(?:PREFIX|SUFFIX|MIDDLE)\]")


@dataclass(frozen=True)
class Family:
    """One row.

    `stops` are sent to the service, most useful first: many take four at most. `others` are special tokens that stand
    nowhere else in the row but must not reach the model inside the user's text.
    """

    name: str
    guess: str  # pattern of model names, lower case; empty: never guessed
    fim: str = ""  # empty: not trained to infill
    begin: str = ""  # before everything
    repo: str = ""  # header, once
    file: str = ""  # each other file; empty: no format of its own, files become blocks headed by a comment
    current: str = ""  # header of the file the hole is in
    alone: bool = False  # repo and current stand there even if no other file is shown
    files_in_prefix: bool = False  # the three above stand inside the prefix, not before the FIM tokens
    stops: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    file_stop: str = ""  # stop once files were shown: the model begins the next one
    blank_before: bool = False  # SentencePiece: a leaked token brings a blank along

    @cached_property
    def specials(self) -> tuple[str, ...]:
        """All special tokens, those that end an answer most often first."""
        text = "".join((self.begin, self.repo, self.file, self.current, self.fim))
        found = (*(s for s in self.stops if _TOKEN.fullmatch(s)), *_TOKEN.findall(text), *self.others)
        return tuple(dict.fromkeys(found))

    @property
    def suffix_first(self) -> bool:
        """Trained to read the suffix before the prefix (SPM), or inside a frame of its own."""
        return bool(self.fim) and self.fim.index("{suffix}") < self.fim.index("{prefix}")

    @cached_property
    def terminators(self) -> tuple[str, ...]:
        """Where an answer ends when it holds one of them: no special token belongs into code."""
        with_blank = tuple(f" {token}" for token in self.specials) if self.blank_before else ()
        return (*with_blank, *dict.fromkeys((*self.stops, *self.specials)))


_PSM_BARS = "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>"
_PSM_PLAIN = "<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>"
_QWEN_STOPS = (
    "<|endoftext|>",
    "<|im_end|>",
    "<|file_sep|>",
    "<|repo_name|>",
    "<|fim_pad|>",
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
)

# Order matters for guessing only: the first pattern found in the model's name wins.
FAMILIES: tuple[Family, ...] = (
    Family(
        name="qwen2.5-coder",
        guess=r"qwen-?_?2\.?5-?_?coder",
        fim=_PSM_BARS,
        repo="<|repo_name|>{repo}\n",
        file="<|file_sep|>{path}\n{content}\n",
        current="<|file_sep|>{path}\n",
        stops=_QWEN_STOPS,
        others=("<|im_start|>",),
    ),
    Family(
        name="qwen3-coder",
        guess=r"qwen-?_?3-?_?coder",
        fim=_PSM_BARS,
        repo="<|repo_name|>{repo}\n",
        file="<|file_sep|>{path}\n{content}\n",
        current="<|file_sep|>{path}\n",
        stops=_QWEN_STOPS,
        others=("<|im_start|>",),
    ),
    # Only the 7B and 13B base and instruct models infill; nothing is expected of larger ones and of Python variants.
    Family(
        name="codellama",
        guess=r"code-?_?llama(?!.*(?:python|34b|70b))",
        fim="<PRE> {prefix} <SUF>{suffix} <MID>",
        stops=("<EOT>", "</s>"),
        blank_before=True,
    ),
    Family(
        name="codellama-spm",
        guess="",
        fim="<PRE> <SUF>{suffix} <MID> {prefix}",
        stops=("<EOT>", "</s>"),
        blank_before=True,
    ),
    Family(
        name="starcoder2",
        guess=r"starcoder-?_?2",
        fim=_PSM_PLAIN,
        repo="<repo_name>{repo}",
        file="<file_sep>{path}\n{content}",
        current="<file_sep>{path}\n",
        stops=("<|endoftext|>", "<file_sep>", "<repo_name>"),
        others=("<fim_pad>",),
    ),
    Family(
        name="starcoder",
        guess=r"starcoder",
        fim=_PSM_PLAIN,
        stops=("<|endoftext|>",),
        others=("<fim_pad>", "<reponame>", "<filename>", "<gh_stars>"),
    ),
    Family(
        name="santacoder",
        guess=r"santacoder",
        fim="<fim-prefix>{prefix}<fim-suffix>{suffix}<fim-middle>",
        stops=("<|endoftext|>",),
        others=("<fim-pad>",),
    ),
    Family(
        name="deepseek-coder",
        guess=r"deepseek-?_?(?:coder|chat|v[234])",
        fim="<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",
        file="#{path}\n{content}\n",
        current="#{path}\n",
        files_in_prefix=True,
        stops=("<｜end▁of▁sentence｜>", "<|EOT|>"),
        others=("<｜begin▁of▁sentence｜>",),
    ),
    Family(
        name="codegemma",
        guess=r"codegemma",
        fim=_PSM_BARS,
        file="{path}\n{content}<|file_separator|>",
        current="{path}\n",
        stops=("<|file_separator|>", "<eos>", "<end_of_turn>"),
        others=("<start_of_turn>",),
    ),
    Family(
        name="codeqwen1.5",
        guess=r"codeqwen",
        fim=_PSM_PLAIN,
        repo="<reponame>{repo}\n",
        file="<file_sep>{path}\n{content}\n",
        current="<file_sep>{path}\n",
        stops=("<|endoftext|>", "<|im_end|>", "<file_sep>", "<fim_pad>"),
        others=("<|im_start|>",),
    ),
    Family(
        name="codestral",
        guess=r"codestral",
        fim="[SUFFIX]{suffix}[PREFIX]{prefix}",
        file="+++++ {path}\n{content}\n\n",
        current="+++++ {path}\n",
        files_in_prefix=True,
        stops=("</s>", "[PREFIX]", "[SUFFIX]"),
        others=("[MIDDLE]",),
        file_stop="\n+++++ ",
    ),
    Family(
        name="granite-4",
        guess=r"granite-?_?4",
        fim=_PSM_BARS,
        stops=("<|end_of_text|>",),
        others=("<|fim_pad|>",),
    ),
    # Other Granite 3 instruct models are not assumed to infill.
    Family(
        name="granite-code",
        guess=r"granite.*code",
        fim=_PSM_PLAIN,
        stops=("<|endoftext|>", "<|end_of_text|>"),
        others=("<fim_pad>", "<reponame>"),
    ),
    Family(
        name="stable-code",
        guess=r"stable-?_?code",
        fim=_PSM_PLAIN,
        stops=("<|endoftext|>",),
        others=("<fim_pad>",),
    ),
    Family(
        name="refact",
        guess=r"refact(?!or)",
        fim=_PSM_PLAIN,
        stops=("<|endoftext|>",),
        others=("<fim_pad>",),
    ),
    Family(
        name="codegeex4",
        guess=r"codegeex-?_?4",
        fim=(
            "###PATH:{path}\n###LANGUAGE:{language}\n###MODE:{mode}\n"
            "<|code_suffix|>{suffix}<|code_prefix|>{prefix}<|code_middle|><|assistant|>\n"
        ),
        begin="<|user|>\n",
        file="###REFERENCE:\n###PATH:{path}\n{content}\n",
        stops=("<|user|>", "<|endoftext|>", "<|observation|>"),
        others=("<|system|>",),
    ),
    Family(
        name="mellum-4b",
        guess=r"mellum",
        fim="<fim_suffix>{suffix}<fim_prefix>{prefix}<fim_middle>",
        file="<filename>{path}\n{content}\n\n",
        current="<filename>{path}\n",
        alone=True,
        stops=("<|endoftext|>", "<filename>"),
        others=("<fim_pad>", "<reponame>"),
    ),
    Family(
        name="seed-coder",
        guess=r"seed-?_?coder",
        fim="<[fim-suffix]>{suffix}<[fim-prefix]>{prefix}<[fim-middle]>",
        stops=("<[end▁of▁sentence]>",),
        others=("<[begin▁of▁sentence]>",),
    ),
    # Not trained to infill, but knows files: the repository's name is followed by the first file at once.
    Family(
        name="smollm2",
        guess=r"smollm-?_?2",
        repo="<repo_name>{repo}",
        file="<file_sep>{path}\n{content}",
        current="<file_sep>{path}\n",
        alone=True,
        stops=("<|endoftext|>", "<|im_end|>", "<file_sep>", "<repo_name>"),
        others=("<|im_start|>",),
    ),
    Family(
        name="yi-coder",
        guess=r"yi-?_?coder",
        stops=("<|endoftext|>", "<|im_end|>"),
        others=("<|im_start|>",),
    ),
    # Terminators of the services' most common models that no source text is likely to hold.
    Family(
        name="unknown",
        guess="",
        stops=("<|endoftext|>", "<|im_end|>", "<EOT>"),
        blank_before=True,  # CodeLlama under another name
    ),
)

BY_NAME: dict[str, Family] = {family.name: family for family in FAMILIES}
UNKNOWN = BY_NAME["unknown"]

# Tokens that are cut from an answer whatever the family is, unless the user's own text holds them. `<filename>`,
# `</s>`, `<PRE>` and their like are not among them: in other languages they are code.
UNMISTAKABLE: tuple[str, ...] = tuple(
    dict.fromkeys(
        token
        for family in FAMILIES
        for token in family.specials
        if "|" in token or "｜" in token or "fim" in token or token == "<EOT>"
    )
)


def choose(name: str, model: str, observer: Observer) -> Family:
    """The family set as `name`; if that is empty or unknown, the one `model`'s name points to. Says what it guessed."""
    if name in BY_NAME:
        return BY_NAME[name]
    if name:
        observer.notice(
            f"family:{name}", f"Unknown prompt family {name!r}. Known are: {', '.join(BY_NAME)}. It is guessed instead."
        )
    lowered = model.lower()
    family = next((f for f in FAMILIES if f.guess and re.search(f.guess, lowered)), UNKNOWN)
    observer.notice(
        f"family-guess:{model}",
        f"Prompt family of the model {model!r}: {family.name} (a guess; set `family` to be sure).",
        warning=False,
    )
    return family
