#include "cli/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cases/challenge_registry.h"
#include "util/clock.h"
#include "version.h"

namespace assay::cli {
store::RunStart new_run(const Harness& harness, std::uint64_t seed, nlohmann::json options) {
  store::RunStart run;
  run.run_id = make_run_id(seed);
  run.started_at = utc_now();
  run.options = std::move(options);
  run.seed = seed;
  run.machine = harness.machine;
  run.assay_version = kVersion;
  run.assay_commit = kCommit;
  return run;
}

std::string make_run_id(std::uint64_t seed) {
  return fmt::format("{}-{:08x}", utc_now("%Y-%m-%dT%H-%M-%SZ"), seed & 0xffffffffu);
}

const Challenge& challenge_of(const ChallengeSpec& spec) {
  return std::ranges::find(challenge_rows(), spec.name, &ChallengeRow::name)->get();
}

void print_set_aside(const store::ResultStore& store) {
  for (const auto& [key, cell] : store.run().cells) {
    if (cell.arrival != Arrival::lesser && cell.arrival != Arrival::older) continue;
    fmt::print("{} is not on the board, which keeps {}; it lies in {}\n", to_string(cell.key),
               cell.arrival == Arrival::lesser ? "a full measurement of the same sources"
                                               : "a newer measurement",
               (store.board_path().parent_path() / cell.evidence.path).string());
  }
}

}  // namespace assay::cli
