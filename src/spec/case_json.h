// Reads a case as written in spec.json and public.json. Internal to spec/.
#pragma once

#include <nlohmann/json.hpp>

#include "assay/case.h"

namespace assay {

// From JSON that the schema has accepted.
CaseSpec case_from_json(const nlohmann::json&);

}  // namespace assay
