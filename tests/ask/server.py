"""A server of the chat-completions protocol, for tests: over real sockets, with real faults.

The model's name selects its behaviour (BEHAVIOURS); the answers depend on the challenge that the prompt
states. Uses only the standard library.

server.py [--port P] [--key KEY]     serves until it is stopped; prints its URL first
server.py COMMAND ARGUMENT...        serves as long as the command runs, with {url} in its words
"""
import argparse
import collections
import http.server
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import tiny_answers  # noqa: E402

HUGE = 2_000_000  # bytes of an answer
UNICODE = "Grüße, 世界, 🚀, \u2028, \u0000?"


def challenge_of(body):
    """The challenge whose prompt is the user's first message."""
    prompt = next(m["content"] for m in body["messages"] if m["role"] == "user")
    for path in sorted(ROOT.glob("challenges/*/prompt.md")):
        if prompt.startswith(path.read_text().strip()[:200]):
            return path.parent.name
    return None


def tiny(body, remark="tiny"):
    challenge = challenge_of(body)
    source = tiny_answers.source_of(ROOT, challenge, remark) if challenge else "// nothing was asked\n"
    return f"Here is `submission.cpp`:\n\n```cpp\n{source}```\n\nIt says that nothing is supported.\n"


def judged_answer(body):
    """The text that `assay judge` marked as the answer: between its delimiters, from the first to the last."""
    system, user = (m["content"] for m in body["messages"])
    marker = re.search(r"'BEGIN ([0-9a-f]{32})'", system)[1]
    return user[user.index(f"\nBEGIN {marker} ") + 1:user.rindex(f"\nEND {marker} ")]


def opinion(h, _):
    """A judge that likes short answers, and gives no opinion on some answers."""
    answer = judged_answer(h.body)
    if "speechless" in answer:
        h.answer("I would give it a ten.")
        return
    rubric = h.body["messages"][1]["content"].split("# The rubric")[-1]
    keys = re.findall(r'^- [^\n]*? \("(\w+)"\):', rubric, re.M)
    mark = max(0, 9 - len(answer) // 2000)
    marks = {key: {"mark": mark, "reason": f"{len(answer)} bytes"} for key in keys}
    h.answer(f"Here is what I think:\n```json\n{json.dumps(marks)}\n```\n")


def shipped(body, model):
    """A shipped answer, as a model would give it."""
    source = (ROOT / "submissions" / model / challenge_of(body) / "submission.cpp").read_text()
    return f"I thought about it.\n\n```cpp\n{source}```\n\nGood luck!\n"


def choice(message, why="stop"):
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": why}]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    # --- what is sent -------------------------------------------------------------------------------

    def send(self, status, body, content_type="application/json", headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def fail(self, status, message, headers=()):
        self.send(status, {"error": {"message": message, "type": "test", "param": None, "code": None}}, headers=headers)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def event(self, data):
        self.chunk(b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n")

    def part(self, delta, why=None):
        self.event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": self.body["model"],
                    "choices": [{"index": 0, "delta": delta, "finish_reason": why}]})

    def cut(self):
        """Ends the connection abruptly, like an unplugged cable."""
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def usage(self, text):
        told = sum(len(m["content"]) for m in self.body["messages"])
        return {"prompt_tokens": told // 4, "completion_tokens": len(text) // 4,
                "total_tokens": told // 4 + len(text) // 4}

    def answer(self, text, why="stop", reasoning="", usage=True, pause=0.0, piece=4096):
        """A complete reply, streamed if that was requested."""
        if not self.body.get("stream"):
            message = {"content": text, **({"reasoning_content": reasoning} if reasoning else {})}
            document = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": self.body["model"],
                        **choice(message, why)}
            time.sleep(pause)
            self.send(200, {**document, **({"usage": self.usage(text)} if usage else {})})
            return
        self.begin_stream()
        self.part({"role": "assistant", "content": ""})
        if reasoning:
            self.part({"reasoning": reasoning})
        for at in range(0, len(text), piece):
            time.sleep(pause)
            self.part({"content": text[at:at + piece]})
        self.part({}, why)
        if usage and self.body.get("stream_options", {}).get("include_usage"):
            self.event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": self.body["model"],
                        "choices": [], "usage": self.usage(text)})
        self.event(b"[DONE]")
        self.chunk(b"")

    def half(self):
        """A reply that breaks off with the connection."""
        if self.body.get("stream"):
            self.begin_stream()
            self.part({"role": "assistant", "content": "```cpp\nint half;\n"})
        else:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b'{"choices": [{"mess')
        self.cut()

    # --- what is asked ------------------------------------------------------------------------------

    def is_allowed(self):
        key = self.server.key
        if not key or self.headers.get("Authorization") == f"Bearer {key}":
            return True
        # Like OpenAI, it repeats the key that it was given.
        self.fail(401, f"Incorrect API key provided: {self.headers.get('Authorization', '')[7:]}.")
        return False

    def do_GET(self):
        if self.path != "/v1/models":
            self.fail(404, f"no such path: {self.path}")
        elif self.is_allowed():
            self.send(200, {"object": "list", "data": [{"id": name, "object": "model", "created": 1, "owned_by": "tests"}
                                                       for name in sorted(BEHAVIOURS)]})

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.split("?")[0] != "/v1/chat/completions":
            self.fail(404, f"no such path: {self.path}")
            return
        if not self.is_allowed():
            return
        self.body = json.loads(data)
        with self.server.lock:
            self.server.requests.append((dict(self.headers), self.body))
            # The number of this request among identical ones, from 1.
            same = json.dumps([self.body["model"], self.body["messages"], self.body.get("seed")])
            self.server.counts[same] += 1
            number = self.server.counts[same]
        behave = BEHAVIOURS.get(self.body["model"])
        if behave is None:
            self.fail(404, f"The model `{self.body['model']}` does not exist or you do not have access to it.")
        else:
            behave(self, number)


def first_then(fault):
    """The fault for the first request, an answer for the next."""
    return lambda h, number: fault(h) if number == 1 else h.answer(tiny(h.body))


def redirect(h):
    h.send(307, b"", headers=[("Location", "http://elsewhere.invalid/v1/chat/completions")])


def waits(h, _):
    h.server.may_answer.wait(60)
    h.answer(tiny(h.body))


def stream_error(h):
    h.begin_stream()
    h.part({"content": "```cpp\nint half;\n"})
    h.event({"error": {"message": "upstream is gone", "code": 502}})
    h.chunk(b"")


def learner(h, _):
    turns = sum(m["role"] == "assistant" for m in h.body["messages"])
    h.answer(["I need more time.", shipped(h.body, "flawed"), shipped(h.body, "textbook")][min(turns, 2)])


def two_blocks(h, _):
    source = tiny_answers.source_of(ROOT, challenge_of(h.body), "one of two")
    h.answer(f"Either\n\n```cpp\n{source}```\n\nor\n\n```cpp\n{source}// other\n```\n")


def seeded(h):
    h.answer(tiny(h.body, f"seed {h.body.get('seed')}"))


BEHAVIOURS = {
    "tiny": lambda h, _: seeded(h),
    "stalls-at-3": lambda h, number: time.sleep(60) if h.body.get("seed") == 3 and number == 1 else seeded(h),
    "textbook": lambda h, _: h.answer(shipped(h.body, "textbook")),
    "flawed": lambda h, _: h.answer(shipped(h.body, "flawed")),
    "broken": lambda h, _: h.answer("```cpp\nint main( {  // submission.cpp\n```\n"),
    "learner": learner,
    "two-blocks": two_blocks,
    "judge": opinion,
    "prose": lambda h, _: h.answer("I would rather talk about something else."),
    "slow": lambda h, _: h.answer(tiny(h.body), pause=0.02, piece=50),
    "waits": waits,
    "silent": lambda h, _: time.sleep(60),
    "busy": first_then(lambda h: h.fail(429, "Rate limit reached", [("Retry-After", "1")])),
    "booked-out": lambda h, _: h.fail(429, "You exceeded your current quota", [("Retry-After", "86400")]),
    "failing": first_then(lambda h: h.fail(500, "The server had an error")),
    "down": lambda h, _: h.send(503, b"<html><b>Service\x1b[2J Unavailable</b></html>", "text/html"),
    "cut": first_then(lambda h: h.half()),
    "stream-error": first_then(stream_error),
    "malformed": first_then(lambda h: h.send(200, b'{"choices": [{"message": {"content": "```')),
    "redirect": lambda h, _: redirect(h),
    "empty": lambda h, _: h.send(200, {"choices": []}),
    "blank": lambda h, _: h.answer(""),
    "refusal": lambda h, _: h.send(200, choice({"content": None, "refusal": "I can't help\nwith \u202ethat."})),
    "too-long": lambda h, _: h.fail(400, "This model's maximum context length is 4096 tokens."),
    "huge": lambda h, _: h.answer(tiny(h.body, "x" * HUGE), piece=65536),
    "unicode": lambda h, _: h.answer(tiny(h.body, UNICODE.replace("\u0000", "")), piece=7),
    "thinking": lambda h, _: h.answer(tiny(h.body), reasoning="Hm.\n```cpp\nint thought;\n```\n"),
    "length": lambda h, _: h.answer(tiny(h.body).split("\n```\n")[0], why="length"),
    "no-usage": lambda h, _: h.answer(tiny(h.body), usage=False),
    "echoes-key": lambda h, _: h.answer(tiny(h.body, h.headers.get("Authorization", ""))),
}


class ChatServer(http.server.ThreadingHTTPServer):
    """In a `with` statement: serves on its own port until the block ends."""
    daemon_threads = True

    def __init__(self, port=0, key=""):
        super().__init__(("127.0.0.1", port), Handler)
        self.key, self.lock = key, threading.Lock()
        self.requests = []  # headers and body of each request, in order
        self.counts = collections.Counter()
        self.may_answer = threading.Event()  # what "waits" waits for

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request, client_address):
        """Clients may go away at any moment."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, OSError)):
            super().handle_error(request, client_address)

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--key", default="")
    options.add_argument("command", nargs=argparse.REMAINDER)
    chosen = options.parse_args()
    with ChatServer(chosen.port, chosen.key) as server:
        if chosen.command:
            words = [word.replace("{url}", server.url) for word in chosen.command]
            status = subprocess.run(words).returncode
        else:
            print(server.url, flush=True)
            status = 0
            signal.sigwait([signal.SIGINT, signal.SIGTERM])
    sys.exit(status)
