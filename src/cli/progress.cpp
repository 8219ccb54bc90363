#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "util/clock.h"

namespace assay::cli {
namespace {

Progress::Output standard_error() {
  Progress::Output output;
  output.terminal = ::isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) output.width = size.ws_col;
  output.write = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  return output;
}

// "0:07", "12:30"
std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

constexpr const char* kClearLine = "\r\033[K";

}  // namespace

std::size_t ProgressText::begin(const std::string& activity, double now) {
  activities_[++begun_] = {activity, now};
  return begun_;
}

void ProgressText::finished(const std::string& line) {
  note(fmt::format("[{}/{}] {}", ++done_, total_, line));
}

std::string ProgressText::status(double now) const {
  constexpr std::size_t kShown = 3;
  std::string line = total_ == 0 ? "" : fmt::format("[{}/{}] ", done_, total_);
  line += clock_text(now - started_);
  std::size_t n = 0;
  for (const auto& [number, activity] : activities_) {
    if (n++ == kShown) break;
    line += fmt::format("{} {} ({})", n == 1 ? "" : ",", activity.text,
                        clock_text(now - activity.since));
  }
  if (activities_.size() > kShown)
    line += fmt::format(", and {} more", activities_.size() - kShown);
  return line;
}

std::string ProgressText::due(double now) {
  std::string text = std::exchange(lines_, {});
  if (terminal_) {
    std::string line = status(now);
    if (line.size() >= width_) line.resize(width_ - 1);
    return kClearLine + text + line;
  }
  if (text.empty() && now - written_ >= kQuiet) text = status(now) + '\n';
  if (!text.empty()) written_ = now;
  return text;
}

std::string ProgressText::last() {
  return (terminal_ ? kClearLine : "") + std::exchange(lines_, {});
}

Progress::Progress(std::size_t total) : Progress(total, standard_error()) {}

Progress::Progress(std::size_t total, Output output)
    : output_(std::move(output)),
      text_(total, output_.terminal, output_.width, steady_seconds()),
      writer_([this] { write_on(); }) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  writer_.join();
}

std::shared_ptr<void> Progress::begin(const std::string& activity) {
  std::size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = text_.begin(activity, steady_seconds());
    news_ = true;
  }
  changed_.notify_one();
  return {nullptr, [this, number](void*) {
            const std::lock_guard lock(mutex_);
            text_.end(number);
          }};
}

void Progress::finished(const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    text_.finished(line);
    news_ = true;
  }
  changed_.notify_one();
}

void Progress::note(const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    text_.note(line);
    news_ = true;
  }
  changed_.notify_one();
}

void Progress::write_on() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    changed_.wait_for(lock, output_.refresh, [this] { return news_ || over_; });
    news_ = false;
    const std::string text = over_ ? text_.last() : text_.due(steady_seconds());
    lock.unlock();  // others need not wait for a slow terminal
    if (!text.empty()) output_.write(text);
    lock.lock();
  }
  // Messages that arrived while the last text was being written.
  const std::string rest = text_.last();
  lock.unlock();
  if (!rest.empty()) output_.write(rest);
}

}  // namespace assay::cli
