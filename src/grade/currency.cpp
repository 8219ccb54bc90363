#include "grade/currency.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "grade/gpu.h"

namespace assay {
namespace {

// The hash of the current data sheet of that name; "" if there is none.
std::string sheet_of_today(const std::string& name) {
  for (const std::string& file : gpu_names()) {
    if (gpu_named(file).name == name) return gpu_named(file).sheet;
  }
  return "";
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

constexpr const char* kMeasuresAgain = "`assay run --stale` measures {} again";

// "3 of 64 results are"
std::string results_are(std::size_t n, std::size_t of) {
  return fmt::format("{} of {} results {}", n, of, n == 1 ? "is" : "are");
}

std::string stale_sentences(const StaleCount& count) {
  const bool one = count.stale == 1;
  std::string text = fmt::format("{} stale ({}): {} marked, and {} no average, rank or comparison.",
                                 results_are(count.stale, count.rows), count.why,
                                 one ? "it is" : "they are", one ? "enters" : "enter");
  if (count.newer < count.stale)
    text += " " + fmt::format(kMeasuresAgain, one ? "it" : "them") + ".";
  if (count.newer > 0) {
    text += fmt::format(" {} of a newer assay: only that one can say what {} worth.",
                        count.newer == 1 ? "1 is" : fmt::format("{} are", count.newer),
                        count.newer == 1 ? "it is" : "they are");
  }
  return text;
}

std::string dated_sentence(const StaleCount& count) {
  const bool one = count.dated == 1;
  return fmt::format("{} of an older spec, like all that {} compared with; {}.",
                     results_are(count.dated, count.rows), one ? "it is" : "they are",
                     fmt::format(kMeasuresAgain, one ? "it" : "them"));
}

}  // namespace

std::string gpu_of(const BoardRow& row) {
  if (row.key.device != Device::cuda) return row.score.modelled_on;
  return row.machine.gpu ? row.machine.gpu->name : "";
}

std::string gpu_of(const Scoreboard& board, Device device) {
  const std::string usual = device == Device::sim ? gpu_named(kDefaultGpu).name : "";
  std::map<std::string, std::size_t> uses;
  for (const auto& [key, row] : board.entries) {
    const std::string name = gpu_of(row);
    if (key.device == device && !name.empty()) ++uses[name];
  }
  std::string most = usual;
  for (const auto& [name, count] : uses) {
    if (count > uses[most]) most = name;
  }
  return most;
}

Yardstick yardstick_of_today(const ChallengeSpec& spec, std::string gpu) {
  return {.gpu = std::move(gpu), .spec_hash = spec.hash};
}

Yardsticks::Yardsticks(const Scoreboard& board, const std::vector<ChallengeSpec>& specs) {
  for (const Device device : kDevices) {
    const std::string gpu = gpu_of(board, device);
    for (const ChallengeSpec& spec : specs)
      all_.emplace(std::pair(device, spec.name), yardstick_of_today(spec, gpu));
  }
  // The specs of a column's rows: today's, and those of rows that nothing else makes stale.
  std::map<std::pair<Device, std::string>, std::set<std::string>> specs_of;
  for (const auto& [key, row] : board.entries) {
    const auto column = all_.find({key.device, key.challenge});
    if (column == all_.end()) continue;
    const Yardstick by_its_own{.gpu = column->second.gpu, .spec_hash = row.spec_hash};
    if (row.spec_hash == column->second.spec_hash || !is_stale(row, by_its_own))
      specs_of[column->first].insert(row.spec_hash);
  }
  for (const auto& [column, hashes] : specs_of) {
    Yardstick& yardstick = all_.at(column);
    if (hashes.size() != 1 || hashes.contains(yardstick.spec_hash)) continue;
    yardstick.spec_hash = *hashes.begin();
    yardstick.is_dated = true;
  }
}

std::vector<std::string> stale_reasons(const BoardRow& row, const Yardstick& yardstick) {
  std::vector<std::string> reasons;
  if (row.revision < oldest_comparable(row.key.device))
    reasons.emplace_back("older measurement revision");
  if (row.revision > kMeasurementRevision) reasons.emplace_back("newer measurement revision");
  if (row.spec_hash != yardstick.spec_hash) reasons.emplace_back("older spec");
  // Rows from before revisions existed do not record their data sheet's hash, only its name.
  const bool known = row.revision > 0 || !row.score.gpu_sheet.empty();
  const bool modelled = !row.score.modelled_on.empty();
  if (modelled && (row.score.modelled_on != yardstick.gpu ||
                   (known && row.score.gpu_sheet != sheet_of_today(row.score.modelled_on)))) {
    reasons.emplace_back("another GPU model");
  }
  if (row.key.device == Device::cuda && gpu_of(row) != yardstick.gpu)
    reasons.emplace_back("another GPU");
  return reasons;
}

bool is_stale(const BoardRow& row, const Yardstick& yardstick) {
  return !stale_reasons(row, yardstick).empty();
}

bool is_dated(const BoardRow& row, const Yardstick& yardstick) {
  return yardstick.is_dated && !is_stale(row, yardstick);
}

std::string currency_mark(const BoardRow& row, const Yardstick& yardstick) {
  if (is_dated(row, yardstick)) return " (older spec)";
  const auto reasons = stale_reasons(row, yardstick);
  return reasons.empty() ? "" : " (stale: " + joined(reasons) + ")";
}

std::string currency_note(const BoardRow& row, const Yardstick& yardstick) {
  const std::string again = "; " + fmt::format(kMeasuresAgain, "it");
  if (is_dated(row, yardstick))
    return "measured against an older spec, like all that it is compared with" + again;
  const auto reasons = stale_reasons(row, yardstick);
  if (reasons.empty()) return "";
  return "stale, and compared with nothing: " + joined(reasons) +
         (is_of_newer_assay(row) ? "" : again);
}

bool is_of_newer_assay(const BoardRow& row) { return row.revision > kMeasurementRevision; }

std::string why_apart(const BoardRow& a, const BoardRow& b, bool across_specs) {
  if (!compare_with_each_other(a.revision, b.revision, a.key.device))
    return "measured at different revisions";
  if (!across_specs && a.spec_hash != b.spec_hash)
    return "measured against different versions of the spec";
  if (a.score.modelled_on != b.score.modelled_on || a.score.gpu_sheet != b.score.gpu_sheet)
    return "modelled on different GPUs";
  if (a.key.device == Device::cuda && gpu_of(a) != gpu_of(b)) return "measured on different GPUs";
  return "";
}

StaleCount count_stale(const Scoreboard& board, const std::vector<ChallengeSpec>& specs) {
  StaleCount count;
  const Yardsticks yardsticks(board, specs);
  std::map<std::string, std::size_t> uses;
  for (const auto& [key, row] : board.entries) {
    if (std::ranges::find(specs, key.challenge, &ChallengeSpec::name) == specs.end()) continue;
    const Yardstick& yardstick = yardsticks.of(key);
    ++count.rows;
    count.dated += is_dated(row, yardstick) ? 1 : 0;
    const auto reasons = stale_reasons(row, yardstick);
    if (reasons.empty()) continue;
    ++count.stale;
    count.newer += is_of_newer_assay(row) ? 1 : 0;
    for (const std::string& reason : reasons) ++uses[reason];
  }
  std::vector<std::string> parts;
  for (const auto& [reason, n] : uses) parts.push_back(fmt::format("{} {}", n, reason));
  count.why = joined(parts);
  return count;
}

std::string stale_text(const StaleCount& count) {
  std::string text = count.stale > 0 ? stale_sentences(count) : "";
  if (count.dated > 0) text += (text.empty() ? "" : " ") + dated_sentence(count);
  return text;
}

}  // namespace assay
