"""assay serve, driven from outside over real sockets, and its Python client.

Usage: serve_test.py ASSAY ROOT [unittest arguments]. Uses only the standard library.
"""
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

ASSAY, ROOT = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
sys.path[:0] = [str(ROOT / "clients" / "python"), str(ROOT / "tests" / "support")]
import assay_client  # noqa: E402
import processes  # noqa: E402

SOFTMAX = "fused_softmax_topk"
RIGHT = (ROOT / "submissions" / "textbook" / SOFTMAX / "submission.cpp").read_text()
TOKEN = "a-token-that-nobody-may-guess"
PATIENCE = 300  # seconds
KINDS = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "object": dict, "array": list,
         "null": type(None)}


def softmax(body):
    return ('#include "abi.h"\nextern "C" int softmax_topk(assay_ctx*, const stk_params* p, const void*, int32_t*, float*,\n'
            "                            float*) {\n" + body + "\n  return ASSAY_OK;\n}\n")


WRONG, NOT_COMPILING = softmax(""), softmax("int x = y;")
HANGING = softmax("for (volatile int i = 0; p->V > 0; ++i) {}")


def is_kind(value, kind):
    return isinstance(value, KINDS[kind]) and not (kind in ("integer", "number") and isinstance(value, bool))


def violations(value, schema, documents, home, at=""):
    """Checks only the JSON Schema features that the two documents use. `documents` are by address; `home` is the
    schema's own document."""
    if "$ref" in schema:
        address, _, pointer = schema["$ref"].partition("#")
        home = address or home
        target = documents[home]
        for part in filter(None, pointer.split("/")):
            target = target[part]
        return violations(value, {**target, **{k: v for k, v in schema.items() if k != "$ref"}}, documents, home, at)
    found = []
    if "oneOf" in schema:
        fitting = [s for s in schema["oneOf"] if not violations(value, s, documents, home, at)]
        found += [] if len(fitting) == 1 else [f"{at}: fits {len(fitting)} of oneOf: {value!r:.80}"]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_kind(value, k) for k in kinds):
        return found + [f"{at}: {value!r:.80} is no {kinds}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r:.80} is none of {schema['enum']}")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        found.append(f"{at}: {value!r:.80} is not {schema['pattern']}")
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        found.append(f"{at}: {value} is out of bounds")
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{at}/{k} is missing" for k in schema.get("required", []) if k not in value]
        found += [f"{at}/{k} is unknown" for k in value if k not in known and rest is False]
        for k, v in value.items():
            found += violations(v, known.get(k, rest if isinstance(rest, dict) else {}), documents, home, f"{at}/{k}")
    if isinstance(value, list):
        for i, v in enumerate(value):
            found += violations(v, schema.get("items", {}), documents, home, f"{at}/{i}")
    return found


class Server:
    """A real server, on a port that the kernel chose."""

    def __init__(self, folder, *args, env=None, token=None):
        self.process = subprocess.Popen(
            [ASSAY, "--root", ROOT, "serve", "--state", folder / "state", "--port", "0", *map(str, args)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        line = self.process.stdout.readline()
        if not line.startswith("serving on http://"):
            raise AssertionError(line + self.process.communicate()[1])
        self.url = line.split()[-1]
        self.address = urllib.parse.urlsplit(self.url).netloc.replace("0.0.0.0", "127.0.0.1")
        self.client = assay_client.Client(f"http://{self.address}", token=token)
        self.documents = {f"/{name}": json.loads(self.raw("GET", f"/{name}")[2])
                          for name in ("openapi.json", "grade.schema.json")}

    def raw(self, method, path, body=None, headers=None):
        """Status, headers and body, unparsed."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def ask(self, method, path, body=None, token=None):
        """The status and the JSON, checked against what the document promises for that status."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        status, headers, text = self.raw(method, path, None if body is None else json.dumps(body), headers)
        plain = path.partition("?")[0]
        paths = self.documents["/openapi.json"]["paths"]
        template = "/v1/tasks/{id}" if plain.startswith("/v1/tasks/") else plain
        promised = paths[template][method.lower()]["responses"][str(status)]
        kind, content = next(iter(promised["content"].items()))
        assert headers["Content-Type"].startswith(kind), headers["Content-Type"]
        for name in promised.get("headers", {}):
            assert name in headers, f"{name} is missing"
        value = json.loads(text) if kind == "application/json" else text
        assert violations(value, content["schema"], self.documents, "/openapi.json") == [], \
            violations(value, content["schema"], self.documents, "/openapi.json")
        return status, value

    def ended(self, id):
        while True:
            task = self.ask("GET", f"/v1/tasks/{id}?wait=30")[1]
            if task["status"] not in ("queued", "running"):
                return task

    def until_running(self, id):
        while self.ask("GET", f"/v1/tasks/{id}")[1]["status"] == "queued":
            time.sleep(0.01)

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-serve-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def server(self, *args, **options):
        server = Server(self.folder, *args, **options)
        self.addCleanup(lambda: server.process.poll() is None and (server.process.kill(), server.process.communicate()))
        return server

    def quick(self, source, **settings):
        return {"challenge": SOFTMAX, "files": {"submission.cpp": source}, "quick": True,
                "stages": ["build", "core", "all"], **settings}

    def refused_start(self, *args, env=None):
        done = subprocess.run([ASSAY, "--root", ROOT, "serve", *map(str, args)], capture_output=True, text=True,
                              timeout=PATIENCE, env={**os.environ, **(env or {})})
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr


class Grades(Case):
    def test_right_wrong_not_compiling_and_hanging_answers(self):
        server = self.server()
        batch = [self.quick(source) for source in (RIGHT, WRONG, NOT_COMPILING, HANGING)]
        status, taken = server.ask("POST", "/v1/batch", {"tasks": batch})
        self.assertEqual(status, 202)
        right, wrong, broken, hanging = (server.ended(task["id"]) for task in taken["tasks"])
        self.assertEqual([t["status"] for t in (right, wrong, broken, hanging)], ["done"] * 4)
        self.assertEqual(right["result"]["failed_stage"], None)
        self.assertEqual([s["status"] for s in right["result"]["stages"]],
                         ["passed", "passed", "passed", "not_run", "not_run", "not_run"])
        self.assertEqual((right["reward"]["compiled"], right["cached"]), (1, False))
        self.assertIs(right["reward"]["right"], True)
        self.assertGreaterEqual(right["reward"]["shaped"], 0.7)
        self.assertEqual((wrong["result"]["verdict"], wrong["result"]["failed_stage"]), ("WA", "core"))
        self.assertEqual((broken["result"]["verdict"], broken["reward"]["shaped"]), ("CE", 0))
        self.assertIn("'y' was not declared", broken["result"]["build_log"])
        self.assertEqual(hanging["result"]["verdict"], "TLE")
        self.assertGreater(right["reward"]["shaped"], wrong["reward"]["shaped"])
        self.assertGreater(wrong["reward"]["shaped"], broken["reward"]["shaped"])
        status, again = server.ask("POST", "/v1/grade", self.quick(RIGHT, client="another"))
        self.assertEqual((again["status"], again["cached"]), ("done", True))
        self.assertEqual(again["result"], right["result"])
        metrics = server.ask("GET", "/metrics")[1]
        self.assertIn('assay_serve_verdicts_total{verdict="WA"} 1\n', metrics)
        self.assertIn('assay_serve_results_total{cache="hit"} 1\n', metrics)
        self.assertRegex(metrics, r'assay_serve_stage_seconds_count\{stage="build"\} 4\n')

    def test_the_result_is_that_of_assay_grade(self):
        server = self.server()
        answer = self.folder / "submission.cpp"
        answer.write_text(RIGHT)
        done = subprocess.run([ASSAY, "--root", ROOT, "grade", answer, "-c", SOFTMAX, "--seed", "7", "--quick", "--stages",
                               "build,core,all", "--json"], capture_output=True, text=True, timeout=PATIENCE, check=True)
        expected = json.loads(done.stdout)
        task = server.ask("POST", "/v1/grade", self.quick(RIGHT, seed=7))[1]
        result = server.ended(task["id"])["result"]
        for document in (expected, result):
            for name in ("finished_at", "built_before"):
                del document[name]
            for stage in document["stages"]:
                del stage["seconds"]
        self.assertEqual(result, expected)

    def test_speed_is_measured_and_rewarded(self):
        server = self.server()
        request = {"challenge": SOFTMAX, "files": {"submission.cpp": RIGHT}, "quick": True}
        tasks = [server.ask("POST", "/v1/grade", {**request, "seed": seed})[1] for seed in (1, 2)]
        for task in (server.ended(t["id"]) for t in tasks):
            self.assertEqual(task["result"]["stages"][5]["status"], "passed")
            self.assertIsNotNone(task["reward"]["log_speed_over_naive"])
            self.assertIsNotNone(task["reward"]["dimensions"]["performance"])

    def test_a_chat_answer_without_code_is_graded_as_no_answer(self):
        server = self.server()
        task = server.ask("POST", "/v1/grade", {"challenge": SOFTMAX, "chat": "I would rather not."})[1]
        task = server.ended(task["id"])
        self.assertEqual((task["result"]["verdict"], task["reward"]["shaped"]), ("NA", 0))


class Tasks(Case):
    def test_cancelling(self):
        server = self.server("--jobs", 1)
        running, waiting = (server.ask("POST", "/v1/grade", self.quick(HANGING, seed=n))[1]["id"] for n in (1, 2))
        server.until_running(running)
        self.assertEqual(server.ask("DELETE", f"/v1/tasks/{waiting}")[0], 200)
        self.assertEqual(server.ask("DELETE", f"/v1/tasks/{running}")[0], 202)
        self.assertEqual(server.ended(running)["status"], "cancelled")
        self.assertEqual(server.ask("DELETE", f"/v1/tasks/{running}")[0], 409)
        self.assertEqual(server.ask("DELETE", f"/v1/tasks/{'0' * 32}")[0], 404)

    def test_a_full_queue(self):
        server = self.server("--jobs", 1, "--queue", 1)
        first = server.ask("POST", "/v1/grade", self.quick(HANGING, seed=1))[1]["id"]
        server.until_running(first)
        self.assertEqual(server.ask("POST", "/v1/grade", self.quick(HANGING, seed=2))[0], 202)
        status, refused = server.ask("POST", "/v1/grade", self.quick(HANGING, seed=3))
        self.assertEqual((status, refused["error"]["code"]), (429, "queue_full"))

    def test_a_killed_server_answers_for_all_after_a_restart(self):
        processes.adopt_orphans()
        server = self.server("--jobs", 1)
        done = server.ended(server.ask("POST", "/v1/grade", self.quick(WRONG))[1]["id"])
        running = server.ask("POST", "/v1/grade", self.quick(HANGING))[1]["id"]
        server.until_running(running)
        waiting = server.ask("POST", "/v1/grade", self.quick(NOT_COMPILING))[1]["id"]
        server.stop(signal.SIGKILL)
        self.assertEqual(processes.orphans(), [])
        server = self.server("--jobs", 1)
        self.assertEqual(server.ask("GET", f"/v1/tasks/{done['id']}")[1], done)
        lost = server.ask("GET", f"/v1/tasks/{running}")[1]
        self.assertEqual(lost["status"], "lost")
        self.assertIn("send it again", lost["why"])
        self.assertEqual(server.ended(waiting)["result"]["verdict"], "CE")
        self.assertIs(server.ask("POST", "/v1/grade", self.quick(WRONG))[1]["cached"], True)

    def test_a_stopped_server_puts_back_what_it_grades(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(how.name):
                server = self.server("--jobs", 1)
                id = server.ask("POST", "/v1/grade", self.quick(HANGING, seed=how.value))[1]["id"]
                server.until_running(id)
                self.assertEqual(server.stop(how), 128 + how)
                server = self.server("--jobs", 1)
                self.assertIn(server.ask("GET", f"/v1/tasks/{id}")[1]["status"], ("queued", "running"))
                server.ask("DELETE", f"/v1/tasks/{id}")
                self.assertEqual(server.ended(id)["status"], "cancelled")
                server.stop()

    def test_what_nothing_can_compile_any_more_is_not_graded(self):
        server = self.server("--jobs", 1)
        if "cuda" not in server.ask("GET", "/v1/health")[1]["languages"]:
            self.skipTest("there is no nvcc")
        running = server.ask("POST", "/v1/grade", self.quick(HANGING))[1]["id"]
        server.until_running(running)
        cuda = {"challenge": SOFTMAX, "files": {"submission.cu": "int x;"}}
        waiting = server.ask("POST", "/v1/grade", cuda)[1]["id"]
        server.stop(signal.SIGKILL)
        server = self.server("--jobs", 1, env={"ASSAY_NVCC": ""})
        task = server.ended(waiting)
        self.assertEqual((task["status"], task["reward"]), ("failed", None))
        self.assertIn("nvcc", task["why"])

    def test_a_full_disk_lets_what_waits_wait(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small tmpfs needs root")
        state = self.folder / "state"
        state.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", state]).returncode != 0:
            self.skipTest("mount is not permitted here")
        self.addCleanup(subprocess.run, ["umount", "-l", state])
        server = self.server("--jobs", 1)
        running = server.ask("POST", "/v1/grade", self.quick(HANGING))[1]["id"]
        server.until_running(running)
        waiting = [server.ask("POST", "/v1/grade", self.quick(NOT_COMPILING, seed=n))[1]["id"] for n in (1, 2)]
        filler = state / "filler"
        with open(filler, "wb", buffering=0) as file, self.assertRaises(OSError):
            while True:
                file.write(bytes(1 << 16))
        server.ask("DELETE", f"/v1/tasks/{running}")
        self.assertEqual(server.ended(running)["status"], "cancelled")
        time.sleep(1.5)  # longer than one try
        for id in waiting:
            self.assertIn(server.ask("GET", f"/v1/tasks/{id}")[1]["status"], ("queued", "running"))
        filler.unlink()
        for id in waiting:
            self.assertEqual(server.ended(id)["result"]["verdict"], "CE")
        server.stop()

    def test_one_server_a_folder(self):
        self.server()
        self.assertIn("another assay serve has", self.refused_start("--state", self.folder / "state", "--port", "0"))


class Doors(Case):
    def test_every_promised_path_is_answered(self):
        server = self.server()
        for path in ("/v1/health", "/metrics", "/openapi.json", "/grade.schema.json"):
            self.assertEqual(server.ask("GET", path)[0], 200)
        health = server.ask("GET", "/v1/health")[1]
        self.assertIn(SOFTMAX, health["challenges"])
        called = {(m, p) for p, methods in server.documents["/openapi.json"]["paths"].items() for m in methods}
        self.assertEqual(called, {("post", "/v1/grade"), ("post", "/v1/batch"), ("get", "/v1/tasks/{id}"),
                                  ("delete", "/v1/tasks/{id}"), ("get", "/v1/health"), ("get", "/metrics"),
                                  ("get", "/openapi.json"), ("get", "/grade.schema.json")})

    def test_what_is_asked_wrongly_is_refused_in_JSON(self):
        server = self.server()
        for body, status in (({}, 422), ({"challenge": "nothing"}, 404), (self.quick(WRONG, stages=["no"]), 422),
                             ({**self.quick(WRONG), "files": {"../submission.cpp": ""}}, 422)):
            self.assertEqual(server.ask("POST", "/v1/grade", body)[0], status, body)
        self.assertEqual(server.ask("POST", "/v1/batch", {"tasks": [{}]})[0], 422)
        self.assertEqual(server.ask("GET", "/v1/tasks/nobody")[0], 404)
        self.assertEqual(server.ask("GET", f"/v1/tasks/{'0' * 32}?wait=soon")[0], 422)
        kind = {"Content-Type": "application/json"}
        for method, path, body, headers, status in (
                ("GET", "/nowhere", None, {}, 404),
                ("GET", "/../../etc/passwd", None, {}, 404),
                ("GET", "/v1/tasks/" + "x" * 8000, None, {}, 414),
                ("PUT", "/v1/grade", "{}", kind, 405),
                ("BREW", "/v1/grade", None, {}, None),
                ("POST", "/v1/grade", "{}", {}, 415),
                ("POST", "/v1/grade", "{}", {**kind, "Host": "example.org"}, 421),
                ("POST", "/v1/grade", "{", kind, 400),
                ("POST", "/v1/grade", "[" * 100_000, kind, 400),
                ("POST", "/v1/grade", b"\x1f\x8b", {**kind, "Content-Encoding": "gzip"}, 415),
                ("POST", "/v1/grade", iter([b"{}"]), kind, 411)):
            with self.subTest(method=method, path=path, status=status):
                answered, _, text = server.raw(method, path, body, headers)
                self.assertIn("error", json.loads(text))
                if status:
                    self.assertEqual(answered, status, text)

    def test_a_body_that_is_too_large_is_not_read(self):
        server = self.server()
        with socket.create_connection(server.address.split(":"), timeout=PATIENCE) as connection:
            connection.sendall(b"POST /v1/grade HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               b"Content-Length: 99999999999\r\n\r\n")
            self.assertIn(b" 413 ", connection.recv(4096).split(b"\r\n")[0])

    def test_a_body_that_is_not_read_is_no_request(self):
        server = self.server()
        second = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        length = b"Content-Length: %d\r\n\r\n" % len(second)
        for first in (b"POST /" + b"x" * 300 + b" HTTP/1.1\r\nHost: localhost\r\n",
                      b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n"):
            with self.subTest(first[:20]), socket.create_connection(server.address.split(":"), timeout=PATIENCE) as c:
                c.sendall(first + length)
                answered = c.recv(4096)
                try:
                    c.sendall(second)
                    while piece := c.recv(65536):
                        answered += piece
                except ConnectionError:  # closed with the second request unread
                    pass
                self.assertEqual(answered.count(b"HTTP/1.1 "), 1, answered)

    def test_ranges_are_not_cut_out(self):
        server = self.server()
        status, _, text = server.raw("GET", "/openapi.json", None, {"Range": "bytes=" + ",".join(["-"] * 2000)})
        self.assertEqual((status, len(text)), (416, 0))

    def test_elsewhere_only_with_a_token(self):
        state = self.folder / "state"
        self.assertIn("--token-file", self.refused_start("--state", state, "--host", "0.0.0.0", "--port", "0"))
        tokens = self.folder / "tokens"
        tokens.write_text("short\n")
        self.assertIn("at least 16", self.refused_start("--state", state, "--token-file", tokens))
        self.assertIn("NO_SUCH is not set", self.refused_start("--state", state, "--token-env", "NO_SUCH"))
        tokens.write_text(f"another-token-somebody-has\n{TOKEN}\n")
        for how in (("--token-file", tokens), ("--token-env", "THE_TOKEN")):
            with self.subTest(how[0]):
                server = self.server("--host", "0.0.0.0", *how, env={"THE_TOKEN": TOKEN}, token=TOKEN)
                for token in (None, "wrong"):
                    self.assertEqual(server.ask("POST", "/v1/grade", {}, token=token)[0], 401)
                    self.assertEqual(server.ask("GET", "/metrics", token=token)[0], 401)
                self.assertEqual(server.ask("GET", "/v1/health")[0], 200)
                self.assertEqual(server.client.grade(SOFTMAX, chat="no").result["verdict"], "NA")
                server.stop()


class PythonClient(Case):
    def test_rewards_of_a_batch(self):
        server = self.server()
        requests = [assay_client.request(SOFTMAX, files={"submission.cpp": source}, quick=True, stages=["build", "core"])
                    for source in (NOT_COMPILING, WRONG)]
        requests.append(assay_client.request(SOFTMAX, chat="no"))
        broken, wrong, none = assay_client.rewards(server.client, requests)
        self.assertEqual((broken, none), (0, 0))
        self.assertGreater(wrong, 0)

    def test_it_comes_again_where_there_is_no_room(self):
        server = self.server("--jobs", 1, "--queue", 2)
        tasks = [server.client.submit(SOFTMAX, chat=f"no {n}", cache=False) for n in range(12)]
        self.assertEqual({server.client.wait(task.id).result["verdict"] for task in tasks}, {"NA"})

    def test_a_batch_that_is_too_large_goes_in_parts(self):
        server = self.server("--jobs", 1, "--queue", 2)
        requests = [assay_client.request(SOFTMAX, chat=f"no {n}", cache=False) for n in range(5)]
        tasks = server.client.submit_batch(requests)
        self.assertEqual([server.client.wait(task.id).result["verdict"] for task in tasks], ["NA"] * 5)

    def test_errors_say_what_the_server_said(self):
        server = self.server()
        with self.assertRaises(assay_client.AssayError) as refused:
            server.client.grade("nothing", chat="no")
        self.assertEqual((refused.exception.status, refused.exception.code), (404, "unknown_challenge"))
        with self.assertRaises(ValueError):
            assay_client.request(SOFTMAX)
        task = server.client.submit(SOFTMAX, files={"submission.cpp": HANGING}, quick=True)
        with self.assertRaises(TimeoutError):
            server.client.wait(task.id, timeout=0.1)
        server.client.cancel(task.id)
        self.assertEqual(server.client.wait(task.id).status, "cancelled")

    def test_errors_of_a_proxy_have_other_forms(self):
        said = {"/text": (b'{"error": "text"}', "2"), "/list": (b"[1]", "Wed, 21 Oct 2099 07:28:00 GMT"),
                "/parts": (b'{"error": {}}', "soon"), "/html": (b"<p>\xff</p>", None)}

        class Proxy(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body, again = said[self.path]
                self.send_response(503, "busy")
                self.send_header("Content-Length", str(len(body)))
                if again is not None:
                    self.send_header("Retry-After", again)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
            threading.Thread(target=proxy.serve_forever, daemon=True).start()
            client = assay_client.Client(f"http://127.0.0.1:{proxy.server_port}")
            for path, message, again in (("/text", "text", 2.0), ("/list", "busy", None), ("/parts", "busy", None),
                                         ("/html", "busy", None)):
                with self.subTest(path), self.assertRaises(assay_client.AssayError) as refused:
                    client.call("GET", path)
                e = refused.exception
                self.assertEqual((e.status, e.code, e.message, e.retry_after), (503, "no_json", message, again))
            proxy.shutdown()

    def test_the_example(self):
        server = self.server()
        (self.folder / "broken.cpp").write_text(NOT_COMPILING)
        (self.folder / "none.md").write_text("caf\u00e9\n", encoding="utf-8")
        done = subprocess.run([sys.executable, ROOT / "clients" / "python" / "assay_client.py", server.client.url, SOFTMAX,
                               "broken.cpp", "none.md", "--stages", "build"], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}, timeout=PATIENCE)
        self.assertEqual(done.stdout.split(), ["0.000", "broken.cpp", "0.000", "none.md"], done.stderr)


if __name__ == "__main__":
    unittest.main()
