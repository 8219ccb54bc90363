"""A client of `assay serve`, with the standard library alone.

    client = Client("http://127.0.0.1:8077")
    task = client.grade("kv_cache", chat=reply, stages=["build", "core", "all"])
    print(task.reward["shaped"])

As a program it computes rewards for a batch, one answer a file:

    python3 assay_client.py http://127.0.0.1:8077 CHALLENGE answer1.cpp answer2.md ...

A file that ends in .cpp or .cu is an answer as it stands, any other is a chat answer. The token comes from the variable
ASSAY_TOKEN.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Iterable, Mapping, Sequence

LONGEST_WAIT = 60.0  # seconds of one long poll, as the server allows
MOST_IN_BATCH = 256
ENDED = frozenset({"done", "failed", "cancelled", "expired", "lost"})


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The server sends none, and another host must not get the token."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener(url: str) -> urllib.request.OpenerDirector:
    loopback = urllib.parse.urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")
    # A proxy has a loopback of its own.
    return urllib.request.build_opener(_NoRedirects, *([urllib.request.ProxyHandler({})] if loopback else []))


class AssayError(Exception):
    """A request that the server refused."""

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after


@dataclasses.dataclass(frozen=True)
class Task:
    """A task as the server told of it. `result` is what `assay grade --json` prints."""
    id: str
    status: str
    cached: bool
    stage: str | None
    why: str | None
    reward: dict[str, Any] | None
    result: dict[str, Any] | None
    raw: dict[str, Any] = dataclasses.field(repr=False)

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Task:
        return cls(raw["id"], raw["status"], raw["cached"], raw["stage"], raw["why"], raw["reward"], raw["result"], raw)

    @property
    def ended(self) -> bool:
        return self.status in ENDED


def request(challenge: str, *, files: Mapping[str, str] | None = None, chat: str | None = None,
            **settings: Any) -> dict[str, Any]:
    """What POST /v1/grade takes. Settings: language, stages, seed, quick, gpu, client, priority, deadline_s, cache."""
    if (files is None) == (chat is None):
        raise ValueError("either files or chat is the answer")
    answer: dict[str, Any] = {"files": dict(files)} if files is not None else {"chat": chat}
    return {"challenge": challenge, **answer, **{k: v for k, v in settings.items() if v is not None}}


class Client:
    """Stateless: threads may share it."""

    def __init__(self, url: str, *, token: str | None = None, patience: float = 600.0) -> None:
        """`patience`: seconds that a full queue or a server that is about to end is asked again."""
        self.url, self.token, self.patience = url.rstrip("/"), token, patience
        self.opener = _opener(url)

    def call(self, method: str, path: str, body: Any = None, timeout: float = 30.0) -> Any:
        """One request. Raises AssayError for what the server refuses, OSError where there is none."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with self.opener.open(asked, timeout=timeout) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as e:
            with e:
                retry = e.headers.get("Retry-After")
                # A proxy that answers in the server's place has forms of its own; its Retry-After may be a date.
                said = None
                try:
                    said = json.loads(e.read())["error"]
                    code, message = said["code"], said["message"]
                except (ValueError, KeyError, TypeError):
                    code, message = "no_json", said if isinstance(said, str) else e.reason
            again = float(retry) if retry and retry.isascii() and retry.isdigit() else None
            raise AssayError(e.code, code, message, again) from None

    def _post(self, path: str, body: Any) -> Any:
        """Comes again as long as there is no room."""
        until = time.monotonic() + self.patience
        while True:
            try:
                return self.call("POST", path, body)
            except AssayError as e:
                if e.retry_after is None or time.monotonic() + e.retry_after > until:
                    raise
                time.sleep(e.retry_after)

    def submit(self, challenge: str, **answer: Any) -> Task:
        return Task.of(self._post("/v1/grade", request(challenge, **answer)))

    def submit_batch(self, requests: Iterable[Mapping[str, Any]]) -> list[Task]:
        """In their order, whatever their number and size."""
        waiting, tasks = list(requests), []
        for first in range(0, len(waiting), MOST_IN_BATCH):
            tasks += self._batch(waiting[first:first + MOST_IN_BATCH])
        return tasks

    def _batch(self, requests: list[Mapping[str, Any]]) -> list[Task]:
        try:
            return [Task.of(raw) for raw in self._post("/v1/batch", {"tasks": requests})["tasks"]]
        except AssayError as e:
            if len(requests) == 1 or (e.status != 413 and e.code != "batch_too_large"):
                raise
        half = len(requests) // 2
        return self._batch(requests[:half]) + self._batch(requests[half:])

    def task(self, id: str, wait: float = 0.0) -> Task:
        wait = min(max(wait, 0.0), LONGEST_WAIT)
        return Task.of(self.call("GET", f"/v1/tasks/{id}?wait={wait}", timeout=30.0 + wait))

    def wait(self, id: str, timeout: float = 3600.0) -> Task:
        """The task once it has ended. Raises TimeoutError; then it goes on."""
        until = time.monotonic() + timeout
        while True:
            task = self.task(id, min(LONGEST_WAIT, max(0.0, until - time.monotonic())))
            if task.ended:
                return task
            if time.monotonic() >= until:
                raise TimeoutError(f"task {id} is still {task.status}")

    def grade(self, challenge: str, *, timeout: float = 3600.0, **answer: Any) -> Task:
        """Submits and waits."""
        task = self.submit(challenge, **answer)
        return task if task.ended else self.wait(task.id, timeout)

    def grade_batch(self, requests: Iterable[Mapping[str, Any]], timeout: float = 3600.0) -> list[Task]:
        until = time.monotonic() + timeout
        return [task if task.ended else self.wait(task.id, max(0.0, until - time.monotonic()))
                for task in self.submit_batch(requests)]

    def cancel(self, id: str) -> Task:
        return Task.of(self.call("DELETE", f"/v1/tasks/{id}"))

    def health(self) -> dict[str, Any]:
        return self.call("GET", "/v1/health")


def rewards(client: Client, requests: Sequence[Mapping[str, Any]], timeout: float = 3600.0) -> list[float | None]:
    """One number an answer; None where nothing was graded, which says nothing of the answer: leave it out of training."""
    return [None if task.reward is None else task.reward["shaped"] for task in client.grade_batch(requests, timeout)]


def main() -> int:
    parser = argparse.ArgumentParser(description="rewards for a batch of answers to one challenge")
    parser.add_argument("url")
    parser.add_argument("challenge")
    parser.add_argument("answers", nargs="+", type=pathlib.Path)
    parser.add_argument("--stages", help="separated by commas, such as build,core,all; default: the whole grade")
    parser.add_argument("--quick", action="store_true", help="few cases, few repetitions")
    options = parser.parse_args()
    settings = {"stages": options.stages.split(",") if options.stages else None, "quick": options.quick, "client": "example"}
    requests = []
    try:
        for path in options.answers:
            text = path.read_text(encoding="utf-8")
            code = path.suffix in (".cpp", ".cu")
            answer = {"files": {f"submission{path.suffix}": text}} if code else {"chat": text}
            requests.append(request(options.challenge, **answer, **settings))
        client = Client(options.url, token=os.environ.get("ASSAY_TOKEN"))
        for path, reward in zip(options.answers, rewards(client, requests)):
            print(f"{'none' if reward is None else format(reward, '.3f'):>8}  {path}")
    except urllib.error.URLError as e:
        print(f"no server answers at {options.url}: {e.reason}; `assay serve` starts one", file=sys.stderr)
        return 2
    except (OSError, ValueError, AssayError) as e:
        print(e, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
