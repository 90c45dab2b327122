"""Which family of languages a document belongs to. One family, one file; adding one is a file and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from completion.context.definitions.c import C
from completion.context.definitions.code import Language
from completion.context.definitions.go import GO
from completion.context.definitions.java import JAVA
from completion.context.definitions.javascript import JAVASCRIPT
from completion.context.definitions.python import PYTHON
from completion.context.definitions.rust import RUST

# By LSP language id.
LANGUAGES: Mapping[str, Language] = {
    "python": PYTHON,
    "javascript": JAVASCRIPT,
    "javascriptreact": JAVASCRIPT,
    "typescript": JAVASCRIPT,
    "typescriptreact": JAVASCRIPT,
    "vue": JAVASCRIPT,
    "svelte": JAVASCRIPT,
    "go": GO,
    "rust": RUST,
    "java": JAVA,
    "c": C,
    "cpp": C,
    "objective-c": C,
    "objective-cpp": C,
    "cuda-cpp": C,
}
