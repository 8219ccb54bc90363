// Logs a program's output to a file of bounded size, without secrets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "util/fd.h"
#include "util/redact.h"

namespace assay::agent {

// Keeps the beginning and the end, each up to half of `limit` bytes; a line between them states how
// much was dropped. Text is redacted before it is written or kept.
class SessionLog {
 public:
  static constexpr std::uint64_t kLimit = std::uint64_t{64} << 20;

  // Creates the file. All functions here throw Error on failure.
  SessionLog(std::filesystem::path, Redactor, std::uint64_t limit = kLimit);

  void add(std::string_view output);
  void close();  // writes the end

  std::uint64_t size() const { return size_; }  // bytes received
  // The last lines, safe to print.
  std::string last_lines(std::size_t lines) const;

 private:
  void keep(std::string_view text);

  std::filesystem::path path_;
  Redactor redactor_;
  std::uint64_t half_;
  Fd file_;
  std::uint64_t written_ = 0, size_ = 0, left_out_ = 0;
  std::string tail_;    // text after the first half, up to twice the second half
  std::string recent_;  // the last few thousand bytes
};

}  // namespace assay::agent
