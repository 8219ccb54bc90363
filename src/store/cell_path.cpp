#include "store/cell_path.h"

#include <fmt/format.h>

#include <cctype>

#include "assay/error.h"
#include "util/sha256.h"

namespace assay::store {
namespace {

// A file name may have 255 bytes. Two of these plus an extension and a temporary suffix fit.
constexpr std::size_t kLongest = 100;

bool is_plain(unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; }

// The name with special bytes, and dots if `dots` is false, as %XX. A name that is too long ends in
// '~', which is itself special, and a hash of the whole name.
std::string escaped(const std::string& name, bool dots) {
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool kept = is_plain(byte) || (c == '.' && dots && !text.empty());
    text += kept ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  if (text.size() <= kLongest) return text;
  const std::string hash = "~" + sha256_hex(name).substr(0, 32);
  return text.substr(0, kLongest - hash.size()) + hash;
}

std::string required(const char* what, const std::string& name) {
  if (name.empty()) throw Error(fmt::format("a cell without a {}", what));
  return name;
}

}  // namespace

std::string cell_path(const CellKey& key) {
  // The file name's only dot, besides the extension's, separates the attempt from the device.
  const std::string attempt = key.attempt.empty() ? "" : escaped(key.attempt, false) + ".";
  return fmt::format("{}/{}/{}{}.json", escaped(required("model", key.model), true),
                     escaped(required("challenge", key.challenge), true), attempt,
                     to_string(key.device));
}

std::string path_part(const std::string& name) { return escaped(required("name", name), true); }

std::string evidence_path(const CellKey& key) { return "cells/" + cell_path(key); }

std::string evidence_path(const CellKey& key, const std::string& run_id) {
  return "runs/" + escaped(run_id, true) + "/" + cell_path(key);
}

}  // namespace assay::store
