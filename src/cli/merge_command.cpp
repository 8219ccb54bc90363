// assay merge: merges results of other folders into this one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "cli/boards.h"
#include "cli/context.h"
#include "cli/output.h"
#include "store/merge_folders.h"
#include "util/stop.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct MergeOptions {
  std::vector<std::string> folders;
  std::string results;
  store::Prefer prefer = store::Prefer::newest;
};

const std::map<std::string, store::Prefer> kPreferences{{"newest", store::Prefer::newest},
                                                        {"theirs", store::Prefer::theirs},
                                                        {"ours", store::Prefer::ours}};

// "12 cells: 5 new, 3 replaced, 4 already here"
std::string in_words(const store::IncomingResults& incoming, const store::MergeCount& count) {
  std::string text =
      fmt::format("{}: {} cells", incoming.folder().string(), incoming.board().entries.size());
  const std::pair<std::size_t, const char*> kParts[] = {
      {count.added, "new"},
      {count.replaced, "replaced ours"},
      {count.same, "already here"},
      {count.older, "older than ours"},
      {count.lesser, "lesser than ours (quick, or without a total)"},
      {count.ours, "left out because ours are preferred"}};
  const char* separator = ": ";
  for (const auto& [number, what] : kParts) {
    if (number == 0) continue;
    text += fmt::format("{}{} {}", separator, number, what);
    separator = ", ";
  }
  if (count.without_evidence > 0) {
    text += fmt::format("; of {} the evidence is missing there: `assay show` cannot explain them",
                        count.without_evidence);
  }
  return text;
}

int merge_all(const Context& context, const MergeOptions& o) {
  // Reads all, and rejects bad ones, before anything is written.
  std::vector<store::IncomingResults> all;
  for (const std::string& folder : o.folders) all.emplace_back(folder);
  const fs::path results = o.results.empty() ? context.results() : fs::path(o.results);
  open_board_to_change(results);
  std::size_t taken = 0;
  std::string said;  // printed in the end: a closed pipe must not stop the rest
  try {
    for (const store::IncomingResults& incoming : all) {
      const store::MergeCount count = store::merge_results(results, incoming, o.prefer);
      said += in_words(incoming, count) + "\n";
      taken += count.taken();
    }
  } catch (const Stopped&) {
    fmt::print("{}", said);
    tell(
        fmt::format("stopped by {}: what was taken in until then is stored; the same command again "
                    "takes in the rest\n",
                    stop_signal_name()));
    throw;
  }
  fmt::print("{}", said);
  if (taken > 0) fmt::print("`assay report` brings the rankings up to date\n");
  return kDone;
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("merge", "Take the results of other folders into this one");
  auto options = std::make_shared<MergeOptions>();
  command->add_option("FOLDER", options->folders, "results folders, as `assay run` writes them")
      ->required();
  command
      ->add_option(
          "--prefer", options->prefer,
          "where both have a cell: the newest (default), theirs or ours. Of the same\n"
          "sources the newest full measurement, however new a quick one is. One of an\n"
          "older measurement revision never replaces one of a newer, whatever is preferred")
      ->transform(CLI::CheckedTransformer(kPreferences).description("{newest,theirs,ours}"))
      ->type_name("TEXT");
  command->add_option("--results", options->results,
                      "the folder that takes them in (default: WORK/results)");
  command->footer(
      R"(
Reads scoreboard.json and cells/ of each FOLDER, and writes nothing there. All are read
before anything is written; one that this assay cannot read stops it.

Exit status: 0 merged, 2 an error. Of a folder that cannot be read nothing is written; on a
full disk, what was taken in until then stays, and the same command takes in the rest.

Examples:
  assay merge /mnt/other/results
  assay merge --prefer theirs laptop/results desktop/results
)");
  command->callback([options, &action] {
    action = [options](const Context& context) { return merge_all(context, *options); };
  });
}

}  // namespace assay::cli
