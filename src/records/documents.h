// What all results files share: a schema number, a published schema, errors that name the file.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "assay/error.h"

namespace assay {

// The schema number of a document, or 0 if it has none.
std::int64_t schema_of(const nlohmann::json&);

// Throws Error with the remedy if the document has another schema.
void require_schema(const nlohmann::json&, int schema);

// Draft-07 schema of one kind of document: a definition in challenges/scoreboard.schema.json.
std::string document_schema(const std::string& kind);

// Runs `read` on a document; errors name its file.
template <class Read>
auto reading(const std::string& file, Read read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& e) {
    throw Error(fmt::format("{}: {}", file, e.what()));
  } catch (const Error& e) {
    const std::string what = e.what();
    throw Error(what.starts_with(file) ? what : fmt::format("{}: {}", file, what));
  }
}

}  // namespace assay
