// JSON for people who read files and diffs: what fits on one line is on one line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace assay {

// Bytes that are not UTF-8 become U+FFFD. Ends with a newline.
std::string json_text(const nlohmann::ordered_json&);

}  // namespace assay
