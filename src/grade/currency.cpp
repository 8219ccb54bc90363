#include "grade/currency.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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

std::vector<std::string> stale_reasons(const BoardRow& row, const ChallengeSpec& spec,
                                       const std::string& gpu) {
  std::vector<std::string> reasons;
  if (row.revision < oldest_comparable(row.key.device))
    reasons.emplace_back("older measurement revision");
  if (row.revision > kMeasurementRevision) reasons.emplace_back("newer measurement revision");
  if (row.spec_hash != spec.hash) reasons.emplace_back("older spec");
  // Rows from before revisions existed do not record their data sheet's hash, only its name.
  const bool known = row.revision > 0 || !row.score.gpu_sheet.empty();
  const bool modelled = !row.score.modelled_on.empty();
  if (modelled && (row.score.modelled_on != gpu ||
                   (known && row.score.gpu_sheet != sheet_of_today(row.score.modelled_on)))) {
    reasons.emplace_back("another GPU model");
  }
  if (row.key.device == Device::cuda && gpu_of(row) != gpu) reasons.emplace_back("another GPU");
  return reasons;
}

bool is_stale(const BoardRow& row, const ChallengeSpec& spec, const std::string& gpu) {
  return !stale_reasons(row, spec, gpu).empty();
}

std::string stale_mark(const BoardRow& row, const ChallengeSpec& spec, const std::string& gpu) {
  const auto reasons = stale_reasons(row, spec, gpu);
  return reasons.empty() ? "" : " (stale: " + joined(reasons) + ")";
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
  std::map<Device, std::string> gpus;
  for (const Device device : kDevices) gpus[device] = gpu_of(board, device);
  std::map<std::string, std::size_t> uses;
  for (const auto& [key, row] : board.entries) {
    const auto spec = std::ranges::find(specs, key.challenge, &ChallengeSpec::name);
    if (spec == specs.end()) continue;
    ++count.rows;
    const auto reasons = stale_reasons(row, *spec, gpus[key.device]);
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
  if (count.stale == 0) return "";
  const bool one = count.stale == 1;
  std::string text = fmt::format(
      "{} of {} results {} stale ({}): {} marked, and {} no average, rank or comparison.",
      count.stale, count.rows, one ? "is" : "are", count.why, one ? "it is" : "they are",
      one ? "enters" : "enter");
  if (count.newer < count.stale)
    text += " `assay run --stale` measures " + std::string(one ? "it" : "them") + " again.";
  if (count.newer > 0) {
    text += fmt::format(" {} of a newer assay: only that one can say what {} worth.",
                        count.newer == 1 ? "1 is" : fmt::format("{} are", count.newer),
                        count.newer == 1 ? "it is" : "they are");
  }
  return text;
}

}  // namespace assay
