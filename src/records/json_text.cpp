#include "records/json_text.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kWidth = 100;

std::string one_line(const Json& j) {
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_nested(const Json& j) {
  for (const Json& element : j) {
    if (element.is_structured()) return true;
  }
  return false;
}

void write(const Json& j, std::size_t indent, std::string& out) {
  const std::string line = one_line(j);
  const bool is_numbers = j.is_array() && !is_nested(j);
  if (!j.is_structured() || is_numbers || indent + line.size() <= kWidth) {
    out += line;
    return;
  }
  const std::string margin(indent + 1, ' ');
  bool first = true;
  out += j.is_object() ? '{' : '[';
  for (auto it = j.begin(); it != j.end(); ++it) {
    out += (first ? "\n" : ",\n") + margin;
    first = false;
    if (j.is_object()) out += one_line(Json(it.key())) + ": ";
    write(*it, indent + 1, out);
  }
  out += '\n' + std::string(indent, ' ');
  out += j.is_object() ? '}' : ']';
}

}  // namespace

std::string json_text(const Json& j) {
  std::string out;
  write(j, 0, out);
  return out + '\n';
}

}  // namespace assay
