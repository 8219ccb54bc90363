#include "cli/annotated_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "util/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

struct Line {
  std::uint64_t instructions = 0, active_lanes = 0, replays = 0;
  std::vector<const sim::Finding*> findings;
};

// Whether one of the folders above the file holds CUDA's own headers.
bool belongs_to_toolkit(const fs::path& file) {
  std::error_code ignored;
  for (fs::path folder = fs::weakly_canonical(file, ignored).parent_path();
       folder.has_relative_path(); folder = folder.parent_path()) {
    if (fs::exists(folder / "cuda_runtime_api.h", ignored)) return true;
  }
  return false;
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.1f}%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

// Line 0 is nvcc's for code that belongs to a file but to none of its lines.
std::string text_of(const sim::SourceLine& place) {
  if (place.file.empty()) return fmt::format("PTX line {}", place.line);
  if (place.line == 0) return fmt::format("{}, no line", place.file);
  return fmt::format("{}:{}", place.file, place.line);
}

// "softmax.cu" and 41 of "softmax.cu:41"; nothing of "PTX line 41" and of "softmax.cu:0".
std::optional<std::pair<std::string, std::uint32_t>> name_and_line(std::string_view place) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::uint32_t line = 0;
  for (const char c : place.substr(colon + 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    line = 10 * line + static_cast<std::uint32_t>(c - '0');
  }
  if (line == 0) return std::nullopt;
  return std::pair{std::string(place.substr(0, colon)), line};
}

// The places that a finding names: its own, then the calls of inlined code.
std::vector<std::string_view> places_in(std::string_view where) {
  constexpr std::string_view kCall = ", inlined at ";
  std::vector<std::string_view> places;
  for (std::size_t end = where.find(kCall); end != std::string_view::npos;
       end = where.find(kCall)) {
    places.push_back(where.substr(0, end));
    where.remove_prefix(end + kCall.size());
  }
  places.push_back(where);
  return places;
}

std::optional<std::vector<std::string>> lines_of(const std::string& file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class Sources {
 public:
  Sources(const sim::RunSummary& summary, const std::vector<fs::path>& programs) {
    for (const sim::KernelSummary& kernel : summary.kernels) {
      for (const sim::LineCounts& counts : kernel.lines) add(counts);
    }
    for (const sim::Finding& finding : summary.findings) add(finding, programs);
  }

  std::string text() {
    std::string text;
    for (const auto& [file, lines] : files_) text += listing(file, lines);
    return text + table_of_elsewhere();
  }

 private:
  using Lines = std::map<std::uint64_t, Line>;  // by number

  bool is_of_toolkit(const std::string& file) {
    const auto [known, fresh] = of_toolkit_.try_emplace(file);
    if (fresh) known->second = belongs_to_toolkit(file);
    return known->second;
  }

  void add(const sim::LineCounts& counts) {
    total_ += counts.instructions;
    const auto own = std::ranges::find_if(counts.places, [&](const sim::SourceLine& place) {
      return !place.file.empty() && place.line != 0 && !is_of_toolkit(place.file);
    });
    if (own == counts.places.end()) {
      elsewhere_[counts.places.front()] += counts.instructions;
      return;
    }
    Line& line = files_[own->file][own->line];
    line.instructions += counts.instructions;
    line.active_lanes += counts.active_lanes;
    line.replays += counts.shared_replays;
  }

  void add(const sim::Finding& finding, const std::vector<fs::path>& programs) {
    for (const std::string_view place : places_in(finding.where)) {
      const auto named = name_and_line(place);
      const std::string file = named ? file_named(named->first, programs) : "";
      if (file.empty()) continue;
      files_[file][named->second].findings.push_back(&finding);
      return;
    }
  }

  // Among the files that executed something, then among the programs; "" if there is none.
  std::string file_named(const std::string& name, const std::vector<fs::path>& programs) const {
    for (const auto& [file, lines] : files_) {
      if (fs::path(file).filename() == name) return file;
    }
    for (const fs::path& program : programs) {
      if (program.filename() == name) return fs::absolute(program).string();
    }
    return "";
  }

  std::string listing(const std::string& file, const Lines& lines) const {
    constexpr std::uint64_t kAround = 2;
    const auto source = lines_of(file);
    std::string text = fmt::format("\n{}\n", printable(file, 1, 400));
    if (!source) text += "(cannot be read: lines by their numbers only)\n";
    text += fmt::format("{:>14} {:>6} {:>6} {:>9} {:>6}\n", "instructions", "share", "lanes",
                        "replays", "line");
    std::uint64_t next = 0;  // the first line that is not yet shown
    for (const auto& [number, line] : lines) {
      const std::uint64_t first = std::max(next, number > kAround ? number - kAround : 1);
      if (next != 0 && first > next) text += fmt::format("{:>46}\n", "...");
      // The lines after the one before this one, and those before this one.
      for (std::uint64_t n = first; n < number && source; ++n) text += row(n, {}, source);
      text += row(number, line, source);
      const auto after = lines.upper_bound(number);
      const std::uint64_t until =
          after == lines.end() ? number + kAround : std::min(number + kAround, after->first - 1);
      next = number + 1;
      for (; next <= until && source; ++next) text += row(next, {}, source);
    }
    return text;
  }

  std::string row(std::uint64_t number, const Line& line,
                  const std::optional<std::vector<std::string>>& source) const {
    if (source && number > source->size() && line.instructions == 0 && line.findings.empty())
      return "";
    std::string text = line.instructions == 0
                           ? std::string(39, ' ')
                           : fmt::format("{:>14} {:>6} {:>6} {:>9} ", line.instructions,
                                         share(line.instructions, total_),
                                         share(line.active_lanes, 32 * line.instructions),
                                         line.replays == 0 ? "" : std::to_string(line.replays));
    text += fmt::format("{:>6}", number);
    if (source && number <= source->size()) {
      std::string code = (*source)[number - 1];
      for (std::size_t tab = code.find('\t'); tab != std::string::npos; tab = code.find('\t'))
        code.replace(tab, 1, "    ");
      if (!code.empty()) text += "  " + printable(code, 1, 200);
    }
    text += '\n';
    for (const sim::Finding* finding : line.findings) {
      text += fmt::format("{:>46}  {}: {}\n", "^", sim::to_string(finding->kind),
                          printable(finding->describe(), 1, 600));
    }
    return text;
  }

  std::string table_of_elsewhere() const {
    constexpr std::size_t kMost = 10;
    if (elsewhere_.empty()) return "";
    std::vector<std::pair<sim::SourceLine, std::uint64_t>> rows(elsewhere_.begin(),
                                                                elsewhere_.end());
    std::ranges::stable_sort(rows, std::greater{}, [](const auto& row) { return row.second; });
    TextTable table({"in no source of the program", "instructions", "share"});
    for (std::size_t i = 0; i < std::min(rows.size(), kMost); ++i) {
      table.add({printable(text_of(rows[i].first), 1, 200), std::to_string(rows[i].second),
                 share(rows[i].second, total_)});
    }
    std::string text = "\n" + table.str();
    if (rows.size() > kMost)
      text += fmt::format("and at {} further places: --json has all\n", rows.size() - kMost);
    return text;
  }

  std::map<std::string, Lines> files_;
  std::map<sim::SourceLine, std::uint64_t> elsewhere_;
  std::map<std::string, bool> of_toolkit_;
  std::uint64_t total_ = 0;  // instructions
};

}  // namespace

std::string annotated_sources(const sim::RunSummary& summary,
                              const std::vector<fs::path>& programs) {
  return Sources(summary, programs).text();
}

}  // namespace assay::cli
