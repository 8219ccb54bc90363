#include "agent/session_log.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "util/files.h"
#include "util/text.h"

namespace assay::agent {
namespace {
constexpr std::size_t kRecent = 8192;

void keep_end(std::string& text, std::size_t bytes) {
  if (text.size() > bytes) text.erase(0, text.size() - bytes);
}

}  // namespace

SessionLog::SessionLog(std::filesystem::path path, Redactor redactor, std::uint64_t limit)
    : path_(std::move(path)),
      redactor_(std::move(redactor)),
      half_(limit / 2),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (!file_) fail_with_errno("create", path_);
}

void SessionLog::add(std::string_view output) {
  size_ += output.size();
  keep(redactor_.feed(output));
}

void SessionLog::keep(std::string_view text) {
  recent_ += text.substr(text.size() - std::min(text.size(), kRecent));
  if (recent_.size() > 2 * kRecent) keep_end(recent_, kRecent);
  const std::size_t room = half_ - written_;
  const std::string_view head = text.substr(0, std::min<std::size_t>(room, text.size()));
  write_all(file_.get(), head, path_);
  written_ += head.size();
  tail_ += text.substr(head.size());
  if (tail_.size() > 2 * half_) {
    left_out_ += tail_.size() - half_;
    keep_end(tail_, half_);
  }
}

void SessionLog::close() {
  keep(redactor_.finish());
  if (tail_.size() > half_) {
    left_out_ += tail_.size() - half_;
    keep_end(tail_, half_);
  }
  if (left_out_ > 0)
    write_all(file_.get(), fmt::format("\n[... {} bytes left out ...]\n", left_out_), path_);
  write_all(file_.get(), tail_, path_);
  tail_.clear();
  file_.reset();
}

std::string SessionLog::last_lines(std::size_t lines) const {
  std::string_view text = recent_;
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::size_t begin = text.size();
  for (std::size_t n = 0; n < lines && begin != std::string_view::npos && begin > 0; ++n)
    begin = text.rfind('\n', begin - 1);
  text.remove_prefix(begin == std::string_view::npos ? 0 : std::min(begin + 1, text.size()));
  return printable(text, lines);
}

}  // namespace assay::agent
