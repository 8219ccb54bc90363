// libFuzzer target of records of runs: any lines are refused, or describe a run whose cells are the
// named ones.
#include <string>
#include <vector>

#include "fuzz/promises.h"
#include "store/run_record.h"

namespace {

using namespace assay;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1))
    lines.emplace_back(text.substr(0, end));
  return lines;  // an incomplete last line is left out
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> lines = lines_of(fuzz::text_of(data, size));
  fuzz::accepts([&] {
    const store::RunRecord run = store::run_from(lines, "run.jsonl");
    fuzz::require(run.cells.size() <= lines.size(), "a line tells of one cell");
    fuzz::require(lines.empty() == run.start.run_id.empty(), "runs have a name");
    for (const auto& [key, cell] : run.cells) fuzz::require(cell.key == key, "cells are their own");
  });
  return 0;
}
