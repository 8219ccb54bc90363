// Evidence on disk, one file a cell, written whole or not at all.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "records/evidence.h"

namespace assay::store {

// The board's row of a cell whose evidence is to lie at `path` below the results folder.
BoardRow row_of(const Evidence&, const std::string& path);

// Writes the text of one to `path` below the folder, on disk when it returns.
// REQUIRES that the folder is locked.
void write_evidence(const std::filesystem::path& folder, const std::string& path,
                    const std::string& text);

// Takes a file of evidence away, and the folders that are empty then. Nothing happens when there is
// none.
void remove_evidence(const std::filesystem::path& folder, const EvidenceRef&);

// What lies where a row says: the evidence, or why it cannot be shown (missing, of another
// measurement).
struct FoundEvidence {
  std::string text;  // of the evidence, empty when there is a problem
  std::string problem;
};
FoundEvidence find_evidence(const std::filesystem::path& folder, const EvidenceRef&);

// The evidence at `path` below the folder if that run wrote it. Cheap where it did not.
std::optional<Evidence> evidence_of_run(const std::filesystem::path& folder,
                                        const std::string& path, const std::string& run_id);

}  // namespace assay::store
