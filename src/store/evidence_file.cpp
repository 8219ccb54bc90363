#include "store/evidence_file.h"

#include <fmt/format.h>

#include <fstream>

#include "assay/error.h"
#include "grade/board_row.h"
#include "util/files.h"
#include "util/sha256.h"

namespace assay::store {
namespace fs = std::filesystem;

BoardRow row_of(const Evidence& evidence, const std::string& path) {
  return board_row(evidence.entry, {path, sha256_hex(evidence_text(evidence))});
}

void write_evidence(const fs::path& folder, const std::string& path, const std::string& text) {
  create_folder((folder / path).parent_path());
  write_file_alone(folder / path, text);
}

void remove_evidence(const fs::path& folder, const EvidenceRef& evidence) {
  const fs::path path = folder / evidence.path;
  std::error_code ec;
  if (!fs::remove(path, ec) && ec)
    throw Error(fmt::format("cannot remove {}: {}", path.string(), ec.message()));
  // Removes the challenge's folder, then the model's, as long as they are empty.
  for (fs::path empty = path.parent_path();; empty = empty.parent_path()) {
    if (empty == folder / "cells" || !fs::remove(empty, ec)) return;
  }
}

FoundEvidence find_evidence(const fs::path& folder, const EvidenceRef& evidence) {
  const fs::path path = folder / evidence.path;
  if (!fs::exists(path)) return {"", fmt::format("{} is missing", path.string())};
  // A folder of somebody else's may hold a pipe or a link to a device.
  if (!fs::is_regular_file(path)) return {"", fmt::format("{} is not a file", path.string())};
  std::string text = read_file(path);
  if (sha256_hex(text) == evidence.sha256) return {std::move(text), ""};
  return {"", fmt::format("{} is not the file that this score came from: its SHA-256 differs. "
                          "`assay run --resume` or `assay merge` again, whichever was killed, puts "
                          "that right; or measure the cell anew",
                          path.string())};
}

std::optional<Evidence> evidence_of_run(const fs::path& folder, const std::string& path,
                                        const std::string& run_id) {
  std::ifstream in(folder / path, std::ios::binary);
  if (!in) return std::nullopt;
  const std::string start = evidence_start(run_id);
  std::string begins(start.size(), '\0');
  in.read(begins.data(), static_cast<std::streamsize>(begins.size()));
  if (!in || begins != start) return std::nullopt;
  return parse_evidence(read_file(folder / path), (folder / path).string());
}

}  // namespace assay::store
