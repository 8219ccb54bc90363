#include "ask/sse.h"

#include <fmt/format.h>

#include "assay/error.h"

namespace assay::ask {
namespace {
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
}

void EventParser::feed(std::string_view bytes) {
  for (const char c : bytes) {
    const bool second_of_crlf = after_cr_ && c == '\n';
    after_cr_ = c == '\r';
    if (second_of_crlf) continue;
    if (c == '\n' || c == '\r') {
      line_ended();
      continue;
    }
    line_ += c;
    if (line_.size() + data_.size() > limit_)
      throw Error(fmt::format("an event of the stream is larger than {} MiB", limit_ >> 20));
  }
}

void EventParser::line_ended() {
  std::string line;
  line.swap(line_);
  if (first_line_ && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  first_line_ = false;
  if (line.empty()) {
    std::string data;
    data.swap(data_);
    if (has_data_) on_data_(data);
    has_data_ = false;
    return;
  }
  const std::size_t colon = line.find(':');
  if (std::string_view(line).substr(0, colon) != "data") return;
  std::string_view value;
  if (colon != std::string::npos) value = std::string_view(line).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

}  // namespace assay::ask
