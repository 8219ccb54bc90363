// assay_direct CHALLENGE SOURCE.cpp [CASE [SEED]]: runs every untimed case (or the named one)
// outside the sandbox, each in its own child process. For authors of challenges, with their own
// code.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "support/direct_runner.h"

namespace {

void print(const assay::CaseResult& r, double seconds) {
  const auto number = [](const std::optional<double>& x) {
    return x ? fmt::format("{:.3g}", *x) : std::string("-");
  };
  fmt::print("{:<12} {:<28} {:<4} {:>6.0f} ms  error {:>9} bound {:>9} accuracy {:>8}  {}  {}\n",
             assay::to_string(r.group), r.name,
             r.verdict == assay::Verdict::ok            ? "OK"
             : r.verdict == assay::Verdict::unsupported ? "n/s"
                                                        : "WA",
             seconds * 1e3, number(r.error), number(r.bound), number(r.accuracy), r.shape,
             r.detail);
  for (const auto& m : r.metrics) fmt::print("{:>40} = {:.6g}\n", m.name, m.value);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: assay_direct CHALLENGE SOURCE.cpp [CASE|timed|all [SEED]]\n");
    return 2;
  }
  const std::string challenge = argv[1], wanted = argc > 3 ? argv[3] : "";
  const std::uint64_t seed = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  auto spec = assay::testing::spec_of(challenge);
  assay::testing::draw_cases(spec, seed);
  const std::string library = assay::testing::compile(argv[2], challenge);
  int failures = 0;
  for (const auto& c : spec.cases) {
    const bool timed = c.group == assay::CaseGroup::timed;
    if (wanted.empty() ? timed : wanted == "timed" ? !timed : wanted != "all" && wanted != c.name)
      continue;
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      alarm(120);
      assay::testing::DirectRunner runner(challenge, library);
      const auto start = std::chrono::steady_clock::now();
      const auto result = runner.run(c, seed);
      print(result,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      std::fflush(stdout);
      _exit(result.verdict == assay::Verdict::wrong_answer);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
      fmt::print("{:<12} {:<28} RE   signal {}\n", assay::to_string(c.group), c.name,
                 WTERMSIG(status));
    if (status != 0) ++failures;
  }
  fmt::print("{} failed\n", failures);
  return failures > 0;
}
