// assay board: the board as a static site.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include "cases/challenge_registry.h"
#include "cli/boards.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "site/site.h"
#include "util/files.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct BoardOptions {
  std::string results, out;
  bool no_sources = false;
};

// The least work of CPU cases, for rooflines; their evidence does not contain it.
site::LeastWorks least_works(const std::vector<ChallengeSpec>& specs) {
  site::LeastWorks all;
  for (const ChallengeSpec& spec : specs) {
    const auto row = std::ranges::find(challenge_rows(), spec.name, &ChallengeRow::name);
    if (row == challenge_rows().end()) continue;
    const Challenge& challenge = row->get();
    for (const CaseSpec& c : spec.cases) {
      if (c.group != CaseGroup::timed || c.drawn || !c.external.empty()) continue;
      if (const auto least = challenge.least_work(c, challenge.plan(c)))
        all.emplace(std::pair(spec.name, c.name), *least);
    }
  }
  return all;
}

std::string size_text(std::uintmax_t bytes) {
  const auto b = static_cast<double>(bytes);
  return b < 1e6 ? fmt::format("{:.0f} kB", b / 1e3) : fmt::format("{:.1f} MB", b / 1e6);
}

void tell_gaps(const site::SiteReport& r) {
  if (r.without_evidence > 0) {
    tell(
        fmt::format("of {} the evidence is not here: their pages say why, and which command makes "
                    "it\n",
                    r.without_evidence == r.cells
                        ? counted(r.cells, "cell")
                        : fmt::format("{} of {}", r.without_evidence, counted(r.cells, "cell"))));
  }
  if (r.unknown > 0) {
    tell(fmt::format("{} results are of challenges that are not known here, and left out\n",
                     r.unknown));
  }
}

int make_board(const Context& context, const BoardOptions& o) {
  const fs::path results = results_folder(context, o.results);
  const fs::path out = o.out.empty() ? results / "site" : fs::path(o.out);
  const Scoreboard board = open_board(results);
  const std::vector<ChallengeSpec> specs = load_specs(context);
  site::SiteInputs in;
  in.board = &board;
  in.specs = &specs;
  in.results = results;
  if (!o.no_sources) in.submissions = context.submissions();
  in.least = least_works(specs);
  in.jobs = std::max(1U, std::thread::hardware_concurrency());
  site::SiteReport report;
  {
    Progress progress(0);
    const auto activity = progress.begin(fmt::format("writing {}", out.string()));
    std::shared_ptr<void> percent;
    std::size_t shown = 0;
    in.progress = [&](std::size_t done, std::size_t all) {
      const std::size_t now = 10 * done / all;
      if (now == shown) return;
      shown = now;
      percent = progress.begin(fmt::format("{} of {} cells", done, all));
    };
    report = site::write_site(in, out);
  }
  tell_gaps(report);
  fmt::print("{} pages of {} cells, {}: open {}\n", report.pages, report.cells,
             size_text(report.bytes), (out / "index.html").string());
  return kDone;
}

}  // namespace

void add_board(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("board", "Write the board as a static site");
  auto options = std::make_shared<BoardOptions>();
  command->add_option("-o,--out", options->out,
                      "folder of the site (default: site/ in the folder of results)");
  command->add_option("--results", options->results,
                      "folder of scoreboard.json (default: WORK/results)");
  command->add_flag("--no-sources", options->no_sources, "leave the answers' sources out");
  command->footer(
      R"(
Rankings, a page for each model, challenge and cell: verdict and reasons, every case,
timing samples, rooflines, counters, sources. Opened from a file, without a network or a
server; it reads without JavaScript, which only sorts and filters. Whatever a submission
wrote is shown as text, and no page may run a script but the site's own.

Nothing is run. A site that was written before is replaced in one step; a folder that
holds anything else is refused. The same board gives the same bytes.

Exit status: 0 written, 2 an error.

Examples:
  assay board                                   then open results/site/index.html
  assay board --results /tmp/r --out /tmp/site  another board
  assay board --no-sources                      to publish it without the answers
)");
  command->callback([options, &action] {
    action = [options](const Context& context) { return make_board(context, *options); };
  });
}

}  // namespace assay::cli
