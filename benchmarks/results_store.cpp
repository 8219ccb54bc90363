// The cost of a results folder as it grows: 1,250 models with an answer to each of 8 challenges.
//
//   - adding a cell, on disk when done, when the board has 100, 1,000 and 10,000
//   - loading the board, and making the rankings and the analysis from it
//   - peak memory of all that
//
// The evidence of a cell is as large as that of the shipped board is on average, about 93 kB. Exit
// status 1 when a limit is exceeded; with --smoke nothing is judged.
//
// Usage: results_store [--smoke] [FOLDER]. With --smoke 200 cells, in a second or two. FOLDER holds
// the files that are written (default: the folder for temporary files); its disk is what is
// measured. Build: ninja -C build results_store.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <span>
#include <vector>

#include "cli/context.h"
#include "invented_board.h"
#include "measure/statistics.h"
#include "records/evidence.h"
#include "report/analysis.h"
#include "report/rankings.h"
#include "store/result_store.h"
#include "util/clock.h"

namespace {

using namespace assay;
namespace fs = std::filesystem;

constexpr double kMostSecondsToAdd = 0.05, kMostSecondsToLoad = 1, kMostSecondsToReport = 3;
constexpr double kMostMemory = 1 << 30;
constexpr std::size_t kSampled = 100;  // cells at the end of each size

double seconds_since(double start) { return steady_seconds() - start; }

bool within(const char* what, double value, double most) {
  if (value <= most) return true;
  fmt::print("{}: {:.3g}, more than {:.3g}\n", what, value, most);
  return false;
}

void print_curve_point(std::size_t size, std::span<const double> seconds) {
  const std::vector<double> last(seconds.begin(), seconds.end());
  fmt::print("{:>8} {:>10.2f} {:>10.2f} {:>10.2f}\n", size, 1e3 * median(last),
             1e3 * quantile(last, 0.99), 1e3 * *std::ranges::max_element(last));
}

// The 99th percentile at the largest size.
double add_cells(const fs::path& folder, bench::InventedBoard& generator,
                 const std::vector<std::size_t>& sizes) {
  store::ResultStore store(folder);
  store::RunStart run;
  run.run_id = "benchmark";
  store.start(run);
  fmt::print("adding a cell, ms, over the last {}:\n{:>8} {:>10} {:>10} {:>10}\n", kSampled,
             "cells", "median", "99 %", "most");
  std::vector<double> seconds;
  for (const std::size_t size : sizes) {
    while (seconds.size() < size) {
      const BoardEntry entry = generator.entry(seconds.size());
      const double start = steady_seconds();
      store.add(entry);
      seconds.push_back(seconds_since(start));
    }
    print_curve_point(size, std::span(seconds).last(std::min(kSampled, size)));
  }
  const double start = steady_seconds();
  store.finish();
  fmt::print("writing the board whole: {:.2f} s, {:.1f} MB\n", seconds_since(start),
             1e-6 * static_cast<double>(fs::file_size(store.board_path())));
  return quantile({seconds.end() - static_cast<std::ptrdiff_t>(kSampled), seconds.end()}, 0.99);
}

double peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

int measure(const fs::path& folder, const std::vector<std::size_t>& sizes, bool judged) {
  bench::InventedBoard generator(cli::load_specs(cli::find_context("")));
  fmt::print("evidence of a cell: {:.1f} kB\n",
             1e-3 * static_cast<double>(evidence_text({"benchmark", generator.entry(0)}).size()));
  const double add = add_cells(folder, generator, sizes);
  double start = steady_seconds();
  const Scoreboard board = store::read_board(folder);
  const double load = seconds_since(start);
  start = steady_seconds();
  std::size_t rankings = ranking_section(board, generator.specs()).size() +
                         rankings_document(board, generator.specs()).size();
  for (const auto& [path, page] : report::analysis_pages(board, generator.specs()))
    rankings += page.size();
  const double report = seconds_since(start);
  const double memory = peak_memory();
  fmt::print(
      "loading the board: {:.2f} s; rankings of it: {:.2f} s, {:.2f} MB; peak memory {:.0f} MB\n",
      load, report, 1e-6 * static_cast<double>(rankings), 1e-6 * memory);
  if (!judged) return 0;
  const bool good[] = {within("seconds to add a cell, 99 %", add, kMostSecondsToAdd),
                       within("seconds to load", load, kMostSecondsToLoad),
                       within("seconds to load and report", load + report, kMostSecondsToReport),
                       within("bytes of memory", memory, kMostMemory)};
  return std::ranges::all_of(good, std::identity()) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto run = [](const fs::path& folder, bool smoke) {
    const std::vector<std::size_t> sizes =
        smoke ? std::vector<std::size_t>{100, 200} : std::vector<std::size_t>{100, 1000, 10000};
    return measure(folder, sizes, !smoke);
  };
  return bench::run_in_folder(argc, argv, "results_store", run);
}
