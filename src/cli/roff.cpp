#include "cli/roff.h"

namespace assay::cli {

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool line_begins = out.empty() || out.back() == '\n';
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace assay::cli
