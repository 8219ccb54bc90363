#include "util/demangle.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "util/characters.h"

namespace assay {

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;  // "i" would become "int"
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

std::string demangled_within(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find("_Z"), text.size());
    out += text.substr(0, at);
    text.remove_prefix(at);
    const auto length =
        static_cast<std::size_t>(std::ranges::find_if_not(text, is_word) - text.begin());
    if (length > 0) out += demangled(std::string(text.substr(0, length)));
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace assay
