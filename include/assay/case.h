// What a spec.json says about one challenge, validated. Pure data.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// What a case is for. core, edge and trap cases make up the correctness score (a failed core case
// caps the total); completeness cases belong to a capability; resource cases only measure; timed
// cases make up the performance score and must be correct on every repetition.
enum class CaseGroup : std::uint8_t { core, edge, trap, completeness, resource, timed };

constexpr bool in_correctness(CaseGroup g) {
  return g == CaseGroup::core || g == CaseGroup::edge || g == CaseGroup::trap;
}

inline constexpr std::uint64_t kInstructionLimit = 1'000'000'000;
inline constexpr std::uint32_t kEachAllocation = 0xffffffff;

// Ties a time budget to the machine's speed. params["seconds"] becomes `times` the time that the
// challenge's par needs for the case `of`, measured right before the answer's first such case, but
// never more than the spec says.
struct Pace {
  std::string of;  // a timed case; "": no pace
  double times = 0;
};

struct CaseSpec {
  std::string name;
  CaseGroup group = CaseGroup::core;
  double weight = 1.0;             // within its group
  std::string capability;          // completeness cases: the item they belong to
  std::string catches;             // trap cases: the mistake, in words
  nlohmann::json params;           // shapes, distribution, tolerances, in the challenge's own terms
  std::int32_t expect_status = 0;  // ASSAY_*; when not ASSAY_OK the outputs must stay untouched
  bool deterministic = false;      // run twice on the same input; outputs must agree bitwise
  double time_limit_s = 5.0;       // wall clock of one call
  std::string uncaught_reason;     // trap cases that no shipped example fails: why
  // Run alone, among the timed cases, because its result depends on how much time it gets.
  bool exclusive = false;
  Pace pace;  // of exclusive cases
  // Not empty: the case runs only when the user names a file, with --corpus for "corpus"; its path
  // is then in params["file"]. Such a case is never graded.
  std::string external;
  // Timed cases: runs of par and of the submission; more on a busy machine.
  int repetitions = 11;
  int naive_repetitions = 3;  // timed cases
  bool quick = false;         // part of a --quick run
  // On the simulated GPU: whether the case runs there, what replaces some of its params (a merge
  // patch, RFC 7396), and how many warp instructions its kernels may execute in one phase.
  bool on_simulator = true;
  nlohmann::json simulator_params = nlohmann::json::object();
  std::uint64_t instruction_limit = kInstructionLimit;
  // The params are drawn from the run's seed when the case is planned; until then there are none.
  bool drawn = false;
  // Base pointers are multiples of 256, as in timed cases; else of an element's size only. Answers
  // may have paths of their own for either.
  bool aligned = false;
  // Which of the case's allocations returns NULL. 0: none; kEachAllocation: each in turn, in a run
  // of its own. The call must manage without it, or return ASSAY_ENOMEM and leave no trace.
  std::uint32_t failing_allocation = 0;
  // Besides resource cases: whether the memory of the whole process is measured, and held to what
  // the challenge's hold_to_account() says.
  bool measures_memory = false;
  // Of its JSON without what holds on the simulated GPU only; spacing does not change it. "" for
  // drawn cases.
  std::string hash;
};

// One axis of a space of legal inputs. A choice is a literal or a range of integers {"from": a,
// "to": b}; the simplest comes first.
struct Axis {
  std::string name;
  std::vector<nlohmann::json> choices;
  double usual = 0;                    // share of the draws that always take the first choice
  std::vector<nlohmann::json> rare{};  // further choices for `assay fuzz`: optional features, large
                                       // sizes
  std::vector<nlohmann::json> simulated{};  // not empty: replaces both on the simulated GPU
};

// The space from which a grading draws its cases random_1, random_2 ...
struct RandomSpace {
  int cases = 24;
  double weight = 1.0;  // of each
  double time_limit_s = 5.0;
  std::uint64_t instruction_limit = kInstructionLimit;
  nlohmann::json base = nlohmann::json::object();  // what every draw includes
  std::vector<Axis> axes;
};

// A measured quantity and the two values between which its points go from all to none. The scale is
// logarithmic when both are positive, else linear; full <= zero means smaller is better. Bounds are
// always absolute: a submission must not gain by taking more than it needs, as it could if a small
// difference between two problems counted.
struct ResourceRule {
  std::string name;
  // The cases that measure it. With several, the median counts. A case that fails or does not
  // report the metric counts as `zero`; if all fail there are no points.
  std::vector<std::string> case_names;
  std::string metric;  // a metric the checker or the harness reports for that case
  double full = 0, zero = 0;
  double weight = 1.0;
  std::string unit, why;
  // For answers on a GPU, when they need other bounds than a few CPU threads do.
  struct Bounds {
    double full = 0, zero = 0;
    std::string why;
  };
  std::optional<Bounds> on_simulator{};
};

struct Capability {
  std::string name, summary;
  double weight = 1.0;
};

// Points per dimension; they sum to 100.
struct Weights {
  double correctness = 50, accuracy = 5, performance = 20, resources = 10, completeness = 10,
         tests = 5;
};

struct Limits {
  // Memory of the worker beyond the harness's own buffers. In a memory group the kernel enforces
  // it; without one there is only a limit on address space, which is looser.
  std::int64_t memory_bytes = 0;
  // How far a process may grow in a resource case beyond what its context's allocator handed out,
  // for challenges that count the bytes held there. 0: no limit.
  std::int64_t heap_bytes = 0;
  int threads = 2;
  double load_time_s = 10;
  double build_time_s = 60;
};

struct ChallengeSpec {
  std::string name, title, difficulty, summary;
  std::vector<std::string> required_symbols, optional_symbols;
  Limits limits;
  Weights weights;
  std::map<CaseGroup, double> correctness_shares;  // core, edge, trap; they sum to 1
  double accuracy_full = 1, accuracy_zero = 4;     // error relative to ref32's error
  std::vector<CaseSpec> cases;
  std::vector<ResourceRule> resources;
  std::vector<Capability> capabilities;
  std::optional<RandomSpace> random;
  std::string directory;  // challenges/<name>, absolute
  std::string hash;       // of spec.json's bytes
  // Of what decides verdicts besides the listed cases: symbols, limits and the space of draws.
  std::string rules_hash;
};

}  // namespace assay
