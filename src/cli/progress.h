// Progress of a long command on stderr. On a terminal: one line that shows the current activity and
// its duration, rewritten every second. In a pipe: such a line whenever nothing else was written
// for a while. A separate thread does all the writing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace assay::cli {

// The text to show; Progress decides when to write it. Times are seconds of any clock.
class ProgressText {
 public:
  // In a pipe, the status is written after this many seconds of silence.
  static constexpr double kQuiet = 25;

  // A total of 0 means unknown.
  ProgressText(std::size_t total, bool terminal, std::size_t width, double now)
      : total_(total), terminal_(terminal), width_(width), started_(now), written_(now) {}

  std::size_t begin(const std::string& activity, double now);  // returns its number
  void end(std::size_t number) { activities_.erase(number); }
  void finished(const std::string& line);  // counts one step of the total
  void note(const std::string& line) { lines_ += line + '\n'; }

  // The text to write now, "" if there is none.
  std::string due(double now);
  // The remaining text at the end; erases the status line.
  std::string last();

 private:
  struct Activity {
    std::string text;
    double since;
  };
  std::string status(double now) const;

  std::size_t total_, done_ = 0;
  bool terminal_;
  std::size_t width_;
  double started_, written_;
  std::map<std::size_t, Activity> activities_;  // by number: oldest first
  std::size_t begun_ = 0;
  std::string lines_;  // finished, not yet written
};

class Progress {
 public:
  struct Output {
    bool terminal = false;
    std::size_t width = 80;
    std::chrono::milliseconds refresh{1000};
    std::function<void(const std::string&)> write;  // called from one thread
  };

  explicit Progress(std::size_t total);  // on stderr
  Progress(std::size_t total, Output);
  ~Progress();

  // The activity lasts as long as the returned object, which must not outlive this. Thread-safe,
  // like all functions here.
  [[nodiscard]] std::shared_ptr<void> begin(const std::string& activity);
  // A step of the total is finished: `line` stays on screen.
  void finished(const std::string& line);
  // Writes a line without counting a step.
  void note(const std::string& line);

 private:
  void write_on();

  Output output_;
  std::mutex mutex_;
  std::condition_variable changed_;
  ProgressText text_;
  bool news_ = false, over_ = false;
  std::thread writer_;
};

}  // namespace assay::cli
