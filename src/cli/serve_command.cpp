// assay serve: grades over HTTP, for training models.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "assay/error.h"
#include "assay/parallel.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "serve/api.h"
#include "serve/grader.h"
#include "serve/http_server.h"
#include "serve/limits.h"
#include "serve/metrics.h"
#include "serve/service.h"
#include "serve/task_store.h"
#include "util/files.h"
#include "util/loopback.h"
#include "util/stop.h"
#include "version.h"

namespace assay::cli {
namespace {

struct ServeCommand {
  HarnessOptions harness;
  std::string host = "127.0.0.1", state, token_file, token_variable;
  int port = 8077;
  std::size_t jobs = static_cast<std::size_t>(available_cores());
  std::size_t queue = 1000, keep = 10'000;
};

// Reads one token per line and rejects short ones, which can be guessed.
std::vector<std::string> tokens_in(const std::string& text, const std::string& where) {
  constexpr std::size_t kShortest = 16;
  std::vector<std::string> tokens;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string token = text.substr(begin, end - begin);
    begin = end + 1;
    while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
    if (token.empty()) continue;
    if (token.size() < kShortest)
      throw Error(fmt::format("{}: a token has at least {} bytes", where, kShortest));
    tokens.push_back(std::move(token));
  }
  if (tokens.empty()) throw Error(fmt::format("{} holds no token", where));
  return tokens;
}

std::vector<std::string> find_tokens(const ServeCommand& c) {
  if (!c.token_file.empty()) return tokens_in(read_file(c.token_file), c.token_file);
  if (!c.token_variable.empty()) {
    const char* value = std::getenv(c.token_variable.c_str());
    const std::string name = "the variable " + c.token_variable;
    if (value == nullptr) throw Error(name + " is not set");
    return tokens_in(value, name);
  }
  if (!is_loopback(c.host)) {
    throw Error(
        fmt::format("{} can be reached from elsewhere: whoever may give this machine work "
                    "needs a token; name one with --token-file or --token-env",
                    c.host));
  }
  return {};
}

serve::GraderSettings grader_settings(const Context& context, const ServeCommand& c,
                                      const Harness& harness) {
  return {
      .tier = harness.tier.tier,
      .simulator_threads = simulator_threads(c.jobs),
      .machine = harness.machine,
      .assay_version = kVersion,
      .assay_commit = kCommit,
      .make_builder = [&context, &c,
                       tier = harness.tier.tier] { return make_builder(context, tier, c.harness); },
      .random_seed = random_seed};
}

void wait_for_stop() {
  pollfd stop{stop_fd(), POLLIN, 0};
  while (stop_signal() == 0) ::poll(&stop, 1, -1);
}

int serve_grades(const Context& context, const ServeCommand& c) {
  const std::vector<std::string> tokens = find_tokens(c);
  const std::vector<ChallengeSpec> specs = load_specs(context);
  const Harness harness = set_up(context, c.harness);
  serve::TaskStore store(c.state);
  serve::Metrics metrics;
  serve::Grader grader(specs, grader_settings(context, c, harness));
  serve::Service service(store, specs, metrics,
                         [&](const serve::GradeRequest& request, const auto& on_stage) {
                           return grader.grade(request, on_stage);
                         },
                         {.jobs = c.jobs,
                          .most_queued = c.queue,
                          .kept = c.keep,
                          .grader = grader.identity(),
                          .has_cuda = grader.has_cuda()});
  serve::Api api(service, metrics, {tokens, kVersion, kCommit});
  serve::HttpServer server(api);
  const int port = server.listen(c.host, c.port);
  service.start();
  const std::string host = c.host.find(':') == std::string::npos ? c.host : "[" + c.host + "]";
  fmt::print("serving on http://{}:{}\n", host, port);
  std::fflush(stdout);
  wait_for_stop();
  service.stop();
  server.stop();
  check_stop();
  return kDone;
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("serve", "Grades over HTTP, as rewards for training");
  command->footer(R"(
A service that grades answers as `assay grade` does, many at a time. POST an answer to
/v1/grade and get a task; GET /v1/tasks/ID?wait=30 returns when it has its result: the
JSON of `assay grade --json`, and rewards made of it. /v1/batch takes many at once, DELETE
cancels, /metrics is for Prometheus, and /openapi.json describes it all. docs/serving.md
shows how, and clients/python/ has a client.

Builds and checks run side by side, --jobs of them. Timing has the machine to itself: put
`time` into the stages only where speed is part of the reward. Among clients those who
send much wait for those who send little. Beyond --queue tasks the answer is 429, with
Retry-After. What was graded before is answered from the results in --state.

It prints its address once it answers. It listens on this machine alone, unless --host
names another address; then it refuses to start without a token. The connection is not
encrypted: put a proxy that speaks TLS before it.

--state holds every task and result. A server that was killed loses no result: what waited
then waits again, and what was being graded is 'lost'. SIGINT and SIGTERM put that back
into the queue and end the server; a second one ends it at once.

Exit status: 130, 143 or 129 stopped by SIGINT, SIGTERM or SIGHUP; 2 wrong usage or a
fault of the harness.

Examples:
  assay serve --state /var/lib/assay
  assay serve --state state --port 0 --jobs 8 --queue 5000
  assay serve --state state --host 0.0.0.0 --token-file tokens.txt
)");
  auto c = std::make_shared<ServeCommand>();
  command->add_option("--state", c->state, "folder of tasks and results; made where it is missing")
      ->required();
  command->add_option("--host", c->host, "address to listen on")->capture_default_str();
  command->add_option("--port", c->port, "0: one that is free, see what is printed")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  auto* file = command->add_option("--token-file", c->token_file,
                                   "tokens, one a line: requests must bear one of them");
  command
      ->add_option("--token-env", c->token_variable, "the environment variable that holds a token")
      ->excludes(file);
  command->add_option("--jobs,-j", c->jobs, "answers that are graded at once (default: the cores)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--queue", c->queue, "tasks that may wait")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  // A batch is answered as a whole, from those that are kept.
  command->add_option("--keep", c->keep, "ended tasks that are kept, and answered from")
      ->check(CLI::Range(serve::kMostInBatch, std::size_t{10'000'000}))
      ->capture_default_str();
  add_harness_options(*command, c->harness);
  command->callback(
      [&action, c] { action = [c](const Context& context) { return serve_grades(context, *c); }; });
}

}  // namespace assay::cli
