#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace assay::cli {
namespace {

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::size_t total) : terminal_(::isatty(STDERR_FILENO) == 1), total_(total) {}

Progress::~Progress() { clear(); }

void Progress::status(const std::string& text) {
  const std::lock_guard lock(mutex_);
  status_ = text;
  show();
}

void Progress::finished(const std::string& text) {
  const std::lock_guard lock(mutex_);
  ++done_;
  clear();
  fmt::print(stderr, "[{}/{}] {}\n", done_, total_, text);
  show();
}

void Progress::note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  clear();
  fmt::print(stderr, "{}\n", text);
  show();
}

void Progress::clear() {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::show() {
  if (!terminal_ || status_.empty()) return;
  std::string line = fmt::format("[{}/{}] {}", done_, total_, status_);
  if (line.size() >= terminal_width()) line.resize(terminal_width() - 1);
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

}  // namespace assay::cli
