#include "cases/judge.h"

#include <fmt/format.h>

#include <array>

#include "assay/abi.h"
#include "assay/tolerance.h"

namespace assay::cases {

const char* status_name(std::int32_t status) {
  constexpr std::array kNames{"ASSAY_OK",     "ASSAY_EINVAL", "ASSAY_ENOTSUP",  "ASSAY_ENOMEM",
                              "ASSAY_ESTATE", "ASSAY_ECAP",   "ASSAY_EINTERNAL"};
  return status >= 0 && status < static_cast<std::int32_t>(kNames.size())
             ? kNames[static_cast<std::size_t>(status)]
             : "an unknown status";
}

namespace {

CheckResult checked(const Challenge& challenge, const FinishedRun& run) {
  return challenge.check(*run.spec, *run.plan, *run.reference, run.buffers, run.server);
}

// If NaN is a required output, a check cannot tell it from poison; see assay/poison.h.
void check_unwritten(const Challenge& challenge, const FinishedRun& run, CheckResult& check) {
  if (!check.pass ||
      !processes::replace_unwritten(*run.plan, *run.layout, run.buffers, run.poison_seed))
    return;
  if (CheckResult again = checked(challenge, run); !again.pass)
    fail(check, fmt::format("{}: it was never written", again.detail));
}

}  // namespace

void judge(const Challenge& challenge, const FinishedRun& run, CaseResult& result) {
  result.verdict = Verdict::wrong_answer;
  const std::int32_t expected = run.spec->expect_status;
  if (run.status == ASSAY_ENOTSUP && expected != ASSAY_ENOTSUP) {
    result.verdict = Verdict::unsupported;
    result.detail = "returned ASSAY_ENOTSUP";
    return;
  }
  if (run.server != nullptr && !run.server->complaint().empty()) {
    result.detail = run.server->complaint();
    return;
  }
  if (run.status != expected) {
    result.detail = fmt::format("returned {} ({}) instead of {}", status_name(run.status),
                                run.status, status_name(expected));
    return;
  }
  result.detail =
      processes::find_overrun(*run.plan, *run.layout, run.output, run.poison_seed, run.device);
  if (!result.detail.empty()) return;
  if (expected != ASSAY_OK) {
    result.detail = processes::find_touched(*run.plan, *run.layout, run.first, run.output,
                                            run.poison_seed, run.device);
    if (result.detail.empty()) result.verdict = Verdict::ok;
    return;
  }
  CheckResult check = checked(challenge, run);
  check_unwritten(challenge, run, check);
  result.error = check.error;
  result.bound = check.bound;
  result.accuracy = check.accuracy;
  result.detail = std::move(check.detail);
  result.metrics = std::move(check.metrics);
  if (check.pass) result.verdict = Verdict::ok;
}

}  // namespace assay::cases
