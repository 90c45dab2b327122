"""llama.cpp's own server (package xllamacpp) as a peer: a child process of `midfill bench engine`.

One JSON object a line on stdin, one on stdout: {"op": "load", ...} starts the server, {"op": "post", "route", "body"}
asks it and answers {"evaluated", "reused"}, the prompt tokens it evaluated and those it had.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any

import xllamacpp


class Peer:
    def __init__(self, path: str, threads: int, context_tokens: int, batch: int, cache_reuse: int) -> None:
        params = xllamacpp.CommonParams()
        params.model.path = path
        params.n_ctx, params.n_batch, params.n_ubatch = context_tokens, batch, batch
        params.n_cache_reuse = cache_reuse
        params.n_parallel = 1
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.hostnames, params.port = ["127.0.0.1"], 0
        params.warmup = False
        params.ui = False
        self._server = xllamacpp.Server(params)
        self._address = self._server.listening_address

    def post(self, route: str, body: dict[str, Any]) -> dict[str, int]:
        request = urllib.request.Request(
            self._address + route, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=600) as answer:
            timings = json.load(answer)["timings"]
        return {"evaluated": timings["prompt_n"], "reused": timings["cache_n"]}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the server prints
    peer: Any = None
    for line in sys.stdin:
        fields = json.loads(line)
        operation = fields.pop("op")
        answer: dict[str, Any] = {}
        if operation == "load":
            peer = Peer(**fields)
        else:
            answer = peer.post(**fields)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
