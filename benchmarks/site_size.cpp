// The cost of the static site of a large board: up to 1,250 models with an answer to each of 8
// challenges, each with evidence and sources. For a board of each size
//
//   - seconds to write it, of which processor time
//   - bytes of all pages, of the largest page of the rankings, of a cell's page on average
//   - peak memory
//
// Exit status 1 when a limit is exceeded; with --smoke nothing is judged.
//
// Usage: site_size [--smoke] [FOLDER]. With --smoke 160 cells, in a second or two. FOLDER holds
// the files that are written (default: the folder for temporary files). Build: ninja -C build
// site_size.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <thread>

#include "cli/context.h"
#include "invented_board.h"
#include "records/evidence.h"
#include "site/links.h"
#include "site/site.h"
#include "store/cell_path.h"
#include "store/evidence_file.h"
#include "submission/submission.h"
#include "util/clock.h"

namespace {

using namespace assay;
namespace fs = std::filesystem;

constexpr double kMostSeconds = 30, kMostBytes = 200e6, kMostRankingBytes = 1e6;
constexpr std::array<std::size_t, 3> kCells{625, 2'500, 10'000};
constexpr std::size_t kSmokeCells = 160, kSourceLines = 250;

// 9 kB, like an answer of medium size.
std::string invented_source() {
  std::string text = "#include \"abi.h\"\n";
  for (std::size_t i = 0; i < kSourceLines; ++i)
    text += fmt::format("  const float x{} = a[{}] * b;  // {}\n", i, i, i);
  return text;
}

// The file need not be on disk on return: flushing 20,000 files would take long.
void write_unflushed(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Writes evidence and sources of the cells; returns their board.
Scoreboard invent(const fs::path& folder, std::size_t cells,
                  const std::vector<ChallengeSpec>& specs) {
  bench::InventedBoard generator(specs);
  const std::string source = invented_source();
  std::string hash;
  Scoreboard board;
  for (std::size_t i = 0; i < cells; ++i) {
    BoardEntry e = generator.entry(i);
    const fs::path answer = folder / "submissions" / e.cell.key.model / e.cell.key.challenge;
    fs::create_directories(answer);
    write_unflushed(answer / "submission.cpp", source);
    if (hash.empty())
      hash = source_hash(read_submissions(answer, e.cell.key.model, e.cell.key.challenge, "")[0]);
    e.cell.build.source_hash = hash;
    const Evidence evidence{"benchmark", std::move(e)};
    const std::string path = store::evidence_path(evidence.entry.cell.key);
    fs::create_directories((folder / "results" / path).parent_path());
    write_unflushed(folder / "results" / path, evidence_text(evidence));
    const BoardRow row = store::row_of(evidence, path);
    board.entries[row.key] = row;
  }
  return board;
}

std::uintmax_t largest_ranking(const fs::path& site) {
  std::uintmax_t most = 0;
  for (std::size_t page = 1; fs::exists(site / site::ranking_page(page)); ++page)
    most = std::max(most, fs::file_size(site / site::ranking_page(page)));
  return most;
}

bool within(const char* what, double value, double most) {
  if (value <= most) return true;
  fmt::print("{}: {:.3g}, more than {:.3g}\n", what, value, most);
  return false;
}

int measure(const fs::path& folder, std::size_t cells, bool judged) {
  const std::vector<ChallengeSpec> specs = cli::load_specs(cli::find_context(""));
  const Scoreboard board = invent(folder, cells, specs);
  site::SiteInputs in;
  in.board = &board;
  in.specs = &specs;
  in.results = folder / "results";
  in.submissions = folder / "submissions";
  in.jobs = std::max(1U, std::thread::hardware_concurrency());
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const double start = steady_seconds();
  const site::SiteReport report = site::write_site(in, folder / "site");
  const double seconds = steady_seconds() - start;
  ::getrusage(RUSAGE_SELF, &after);
  const auto spent = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  const double processor = spent(after.ru_utime) + spent(after.ru_stime) - spent(before.ru_utime) -
                           spent(before.ru_stime);
  const auto ranking = static_cast<double>(largest_ranking(folder / "site"));
  const auto bytes = static_cast<double>(report.bytes);
  fmt::print(
      "{} cells on {} threads: {:.1f} s, {:.1f} s of processors\n"
      "{} pages, {:.1f} MB; a cell with its share {:.1f} kB; largest page of rankings {:.0f} kB\n"
      "without evidence {}, without sources {}; peak memory {:.0f} MB\n",
      report.cells, in.jobs, seconds, processor, report.pages, 1e-6 * bytes,
      1e-3 * bytes / static_cast<double>(report.cells), 1e-3 * ranking, report.without_evidence,
      report.without_sources, 1e-3 * static_cast<double>(after.ru_maxrss));
  if (report.without_evidence + report.without_sources > 0) return 1;
  if (!judged) return 0;
  const bool good[] = {within("seconds", seconds, kMostSeconds),
                       within("bytes of the site", bytes, kMostBytes),
                       within("bytes of a page of rankings", ranking, kMostRankingBytes)};
  return std::ranges::all_of(good, std::identity()) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto run = [](const fs::path& folder, bool smoke) {
    if (smoke) return measure(folder / "smoke", kSmokeCells, false);
    int status = 0;
    for (const std::size_t cells : kCells)
      status = std::max(status, measure(folder / std::to_string(cells), cells, true));
    return status;
  };
  return bench::run_in_folder(argc, argv, "site_size", run);
}
