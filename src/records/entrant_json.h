// JSON of the facts about who answered: model.json, attempt.json, and the parts of both in results.
// challenges/entrant.schema.json describes them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "assay/entrant.h"
#include "assay/error.h"

namespace assay {

// What is wrong with a document: "name: expected a text". `key` is the place, "" for the whole
// document.
class FactError : public Error {
 public:
  FactError(std::string key, const std::string& cause)
      : Error(key.empty() ? cause : key + ": " + cause), key_(std::move(key)) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

// Unknown fields are left out. Texts are shortened and made printable so that they can be read
// back.
nlohmann::ordered_json to_json(const ModelInfo&);
nlohmann::ordered_json to_json(const AttemptRecord&);
// Without the fields that only attempt.json holds.
nlohmann::ordered_json board_json(const AttemptRecord&);

// Throw FactError for an unknown key, a value of the wrong type, a text that is too long or not
// plain text, a negative number, an invalid web address or an invalid date.
ModelInfo model_info_from(const nlohmann::json&);
AttemptRecord attempt_record_from(const nlohmann::json&);

}  // namespace assay
