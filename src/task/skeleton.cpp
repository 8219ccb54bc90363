#include "task/skeleton.h"

#include <fmt/format.h>

#include <regex>

#include "assay/error.h"

namespace assay::task {
namespace {

std::string without_comments(const std::string& text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find("/*", at);
    kept += text.substr(at, begin - at);
    if (begin == std::string::npos) break;
    const std::size_t end = text.find("*/", begin);
    if (end == std::string::npos) break;
    at = end + 2;
  }
  return kept;
}

struct Prototype {
  std::string type, parameters;
};

Prototype prototype_of(const std::string& declarations, const std::string& name) {
  const std::regex pattern("\\n([A-Za-z_][A-Za-z0-9_ ]*[ *]+)" + name + "\\(([^;{}]*)\\);");
  std::smatch found;
  if (!std::regex_search(declarations, found, pattern))
    throw Error(fmt::format("abi.h declares no function {}", name));
  std::string type = found[1];
  type.erase(type.find_last_not_of(' ') + 1);
  return {type, found[2]};
}

std::string body_of(const std::string& type) {
  if (type == "void") return "{}";
  return type == "int" ? "{ return ASSAY_ENOTSUP; }" : "{ return 0; }";
}

}  // namespace

std::string skeleton(const std::string& interface, const std::vector<std::string>& functions,
                     Language language) {
  const std::string declarations = without_comments(interface);
  std::string text = "#include \"abi.h\"\n";
  if (language == Language::cuda) text += "\n#include <cuda_runtime.h>\n";
  for (const std::string& name : functions) {
    const Prototype p = prototype_of(declarations, name);
    text +=
        fmt::format("\nextern \"C\" {} {}({}) {}\n", p.type, name, p.parameters, body_of(p.type));
  }
  return text;
}

}  // namespace assay::task
