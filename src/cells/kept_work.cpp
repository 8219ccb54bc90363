#include "cells/kept_work.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "util/files.h"
#include "util/sha256.h"

namespace assay::cells {
namespace fs = std::filesystem;
using nlohmann::json;

fs::path work_file(const fs::path& folder, const fs::path& library, const ChallengeSpec& spec,
                   const std::string& case_name) {
  static const std::string program = sha256_hex(read_file("/proc/self/exe"));
  const std::string key =
      fmt::format("{} {} {} {}", program, library.stem().string(), spec.hash, case_name);
  return folder / (sha256_hex(key) + ".work.json");
}

std::optional<SimulatedWork> load_work(const fs::path& file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  touch(file);
  const json document = json::parse(in, nullptr, false);
  if (!document.is_object()) return std::nullopt;
  std::vector<Metric> metrics;
  for (const auto& [name, value] : document.items()) {
    if (value.is_number()) metrics.push_back({name, value.get<double>()});
  }
  return simulated_work(metrics);
}

void save_work(const fs::path& file, const SimulatedWork& work) {
  std::vector<Metric> metrics;
  add_metrics(metrics, work);
  json document = json::object();
  for (const Metric& m : metrics) document[m.name] = m.value;
  write_file_atomically(file, document.dump());
}

}  // namespace assay::cells
