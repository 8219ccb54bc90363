// Facts about who answered, as JSON: model.json, attempt.json, and what results hold of both.
// challenges/entrant.schema.json describes them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "assay/entrant.h"
#include "assay/error.h"

namespace assay {

// What is wrong with a document: "name: expected a text". `key` is where, "" for the whole.
class FactError : public Error {
 public:
  FactError(std::string key, const std::string& cause)
      : Error(key.empty() ? cause : key + ": " + cause), key_(std::move(key)) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

// What is not known is left out. Texts are cut, and made printable, to what reading accepts.
nlohmann::ordered_json to_json(const ModelInfo&);
nlohmann::ordered_json to_json(const AttemptRecord&);
// Without what only attempt.json holds.
nlohmann::ordered_json board_json(const AttemptRecord&);

// Throw FactError: an unknown key, a value of another type, a text that is too long or not plain
// text, a negative number, a link that is no web address, a date that is none.
ModelInfo model_info_from(const nlohmann::json&);
AttemptRecord attempt_record_from(const nlohmann::json&);

}  // namespace assay
