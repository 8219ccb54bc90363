// Evidence on disk: one file per cell, written whole or not at all.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "records/evidence.h"

namespace assay::store {

// The board row of a cell whose evidence is stored at `path` below the results folder.
BoardRow row_of(const Evidence&, const std::string& path);

// Writes evidence text to `path` below the folder; on disk when it returns. REQUIRES that the
// folder is locked.
void write_evidence(const std::filesystem::path& folder, const std::string& path,
                    const std::string& text);

// Removes an evidence file, and folders that this leaves empty. Does nothing if there is no file.
void remove_evidence(const std::filesystem::path& folder, const EvidenceRef&);

// The evidence a row refers to, or why it cannot be shown (missing, or of another measurement).
struct FoundEvidence {
  std::string text;  // the evidence; empty if there is a problem
  std::string problem;
};
FoundEvidence find_evidence(const std::filesystem::path& folder, const EvidenceRef&);

// The evidence at `path` below the folder if that run wrote it. Cheap if it did not.
std::optional<Evidence> evidence_of_run(const std::filesystem::path& folder,
                                        const std::string& path, const std::string& run_id);

}  // namespace assay::store
