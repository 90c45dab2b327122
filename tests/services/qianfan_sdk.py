"""Calls Qianfan through its official SDK: `qianfan_sdk.py URL ACCESS_KEY SECRET_KEY`. Prints one line for each call."""

from __future__ import annotations

import os
import sys
from typing import Any

url, access, secret = sys.argv[1:]
os.environ |= {
    "QIANFAN_ACCESS_KEY": access,
    "QIANFAN_SECRET_KEY": secret,
    "QIANFAN_BASE_URL": url,
    "QIANFAN_CONSOLE_API_BASE_URL": url,
    "QIANFAN_IAM_BASE_URL": url,
    "QIANFAN_DISABLE_CACHE": "true",
    "QIANFAN_LLM_API_RETRY_COUNT": "1",
}

import qianfan  # noqa: E402 - reads the environment
from qianfan.resources.console.iam import IAM  # noqa: E402

completion: Any = qianfan.Completion(endpoint="codellama_7b_instruct")
print(completion.do(prompt="def f():", temperature=0.2)["result"])
print("".join(part["result"] for part in completion.do(prompt="def f():", stream=True)))
print(IAM.create_bearer_token(100)["token"])
chat: Any = qianfan.ChatCompletion(version="2", app_id="app-1", model="m")
parts = chat.do(messages=[{"role": "user", "content": "x"}], stream=True)
print("".join(part["choices"][0]["delta"]["content"] for part in parts))
embedding: Any = qianfan.Embedding()
print(len(embedding.do(texts=["a", "bb"])["data"]))
print(qianfan.Reranker().do("a b", ["b", "a b"])["results"][0]["index"])
