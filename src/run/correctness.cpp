#include "run/correctness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>

#include "assay/random.h"
#include "run/case_input.h"
#include "run/execute.h"
#include "util/files.h"

namespace assay::run {
namespace {

// Runs the cases of one submission one after the other, starting workers as needed.
class Session {
 public:
  Session(const Challenge& challenge, const WorkerSettings& settings, std::uint64_t run_seed,
          std::vector<PlannedCase> cases, TimeAccount& account)
      : challenge_(challenge),
        settings_(settings),
        run_seed_(run_seed),
        cases_(std::move(cases)),
        account_(account),
        input_("input", capacity(&Layout::input_bytes), Arena::Access::worker_reads) {}

  std::vector<CaseResult> run() {
    std::vector<CaseResult> results(cases_.size());
    for (const std::size_t i : shuffled_order()) {
      results[i] = run_case(cases_[i]);
      ++account_.cases;
    }
    return results;
  }

 private:
  std::size_t capacity(std::size_t Layout::*bytes) const {
    std::size_t most = 16384;
    for (const PlannedCase& c : cases_) most = std::max(most, c.layout.*bytes);
    return most;
  }

  std::vector<std::size_t> shuffled_order() const {
    std::vector<std::size_t> order(cases_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random random(substream(run_seed_, 0x0bde2));
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
    }
    return order;
  }

  CaseResult not_run(const PlannedCase& planned, Verdict verdict, std::string detail) const {
    CaseResult result;
    result.name = planned.spec->name;
    result.group = planned.spec->group;
    result.shape = challenge_.shape(*planned.spec);
    result.verdict = verdict;
    result.detail = std::move(detail);
    return result;
  }

  // A loaded worker, or why there is none.
  std::optional<Outcome> start_worker() {
    const Charge charge(account_.workers);
    ++account_.workers_started;
    worker_ = std::make_unique<WorkerProcess>(settings_, input_, capacity(&Layout::output_bytes));
    const Outcome outcome = worker_->load();
    if (outcome.verdict == Verdict::ok) return std::nullopt;
    worker_.reset();
    return outcome;
  }

  CaseResult run_case(const PlannedCase& planned) {
    CaseResult result = attempt_case(planned);
    result.seed = case_seed(run_seed_, settings_.spec->name, planned.spec->name);
    if (result.verdict == Verdict::time_limit || result.verdict == Verdict::idle_limit) {
      ++timeouts_;
      last_timeout_ = result.verdict;
    }
    if (worker_ != nullptr && !worker_->alive()) worker_.reset();
    return result;
  }

  CaseResult attempt_case(const PlannedCase& planned) {
    if (load_failure_) return not_run(planned, load_failure_->verdict, load_failure_->detail);
    if (timeouts_ >= kPatience) {
      return not_run(planned, last_timeout_,
                     fmt::format("not attempted: {} other cases ran into their time limit", kPatience));
    }
    if (worker_ == nullptr) {
      load_failure_ = start_worker();
      if (load_failure_) return not_run(planned, load_failure_->verdict, load_failure_->detail);
    }
    CaseInput input(challenge_, planned, input_.data());
    {
      const Charge charge(account_.reference);
      input.draw(case_seed(run_seed_, settings_.spec->name, planned.spec->name));
    }
    return planned.spec->deterministic ? run_twice(input) : run_once(input);
  }

  CaseResult run_once(CaseInput& input) {
    ExecuteOptions options;
    options.case_id = ++runs_;
    options.poison_seed = substream(run_seed_, 0x9015 + runs_);
    options.measure_memory = true;
    return execute(*worker_, input, options, account_);
  }

  // Both runs must be right and agree in every byte.
  CaseResult run_twice(CaseInput& input) {
    CaseResult first = run_once(input);
    if (first.verdict != Verdict::ok) return first;
    const std::vector<std::byte> saved = outputs(input);
    CaseResult second = run_once(input);
    if (second.verdict == Verdict::ok && outputs(input) != saved) {
      second.verdict = Verdict::wrong_answer;
      second.detail = "two runs on the same input differ in some bit";
    }
    return second;
  }

  std::vector<std::byte> outputs(const CaseInput& input) const {
    std::vector<std::byte> bytes;
    const PlannedCase& planned = input.planned();
    for (std::size_t i = 0; i < planned.plan.buffers.size(); ++i) {
      const wire::BufferSlot& slot = planned.layout.slots[i];
      if (slot.in_output == 0 || slot.null != 0 || !planned.plan.buffers[i].compared) continue;
      const std::byte* begin = worker_->output() + slot.offset;
      bytes.insert(bytes.end(), begin, begin + slot.bytes);
    }
    return bytes;
  }

  const Challenge& challenge_;
  const WorkerSettings& settings_;
  const std::uint64_t run_seed_;
  const std::vector<PlannedCase> cases_;
  TimeAccount& account_;
  Arena input_;
  std::unique_ptr<WorkerProcess> worker_;
  std::optional<Outcome> load_failure_;
  std::uint64_t runs_ = 0;
  int timeouts_ = 0;
  Verdict last_timeout_ = Verdict::time_limit;
};

}  // namespace

bool CaseFilter::takes(const CaseSpec& spec) const {
  if (!only.empty()) return spec.name == only;
  if (!targets.empty()) {
    const bool correctness = spec.group == CaseGroup::core || spec.group == CaseGroup::edge ||
                             spec.group == CaseGroup::trap;
    return correctness || std::ranges::find(targets, spec.name) != targets.end();
  }
  return !quick || spec.quick;
}

std::uint64_t case_seed(std::uint64_t run_seed, const std::string& challenge,
                        const std::string& case_name) {
  std::uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
  for (const char c : challenge + "/" + case_name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  return substream(run_seed, hash);
}

std::vector<CaseResult> run_correctness(const Challenge& challenge, const WorkerSettings& settings,
                                        std::uint64_t run_seed, const CaseFilter& filter,
                                        TimeAccount& account) {
  std::vector<PlannedCase> cases;
  for (const CaseSpec& spec : settings.spec->cases) {
    const bool wanted = spec.group != CaseGroup::timed && spec.exclusive == filter.exclusive;
    if (wanted && filter.takes(spec)) cases.push_back(plan_case(challenge, spec));
  }
  if (cases.empty()) return {};
  const Charge charge(account.total);
  return Session(challenge, settings, run_seed, std::move(cases), account).run();
}

}  // namespace assay::run
