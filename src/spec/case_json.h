// A case as spec.json and public.json write it. Internal to spec/.
#pragma once

#include <nlohmann/json.hpp>

#include "assay/case.h"

namespace assay {

// Of JSON that the schema has accepted.
CaseSpec case_from_json(const nlohmann::json&);

}  // namespace assay
