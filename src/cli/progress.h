// Progress of a long command on stderr: on a terminal one line that says what is being done and for
// how long, rewritten every second; in a pipe such a line whenever nothing else was said for a
// while. A thread of its own does all the writing.
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

// What there is to show; who writes it, and when, is Progress's affair. Seconds are of any clock.
class ProgressText {
 public:
  // In a pipe the status follows when nothing was written for this long.
  static constexpr double kQuiet = 25;

  // A total of 0: nobody knows how much there is to do.
  ProgressText(std::size_t total, bool terminal, std::size_t width, double now)
      : total_(total), terminal_(terminal), width_(width), started_(now), written_(now) {}

  std::size_t begin(const std::string& activity, double now);  // returns its number
  void end(std::size_t number) { activities_.erase(number); }
  void finished(const std::string& line);  // counts one of the total
  void note(const std::string& line) { lines_ += line + '\n'; }

  // What is to be written now, "" when nothing is.
  std::string due(double now);
  // What is left to say at the end; the status line goes.
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
  std::map<std::size_t, Activity> activities_;  // by number: the oldest first
  std::size_t begun_ = 0;
  std::string lines_;  // finished, not yet written
};

class Progress {
 public:
  struct Output {
    bool terminal = false;
    std::size_t width = 80;
    std::chrono::milliseconds refresh{1000};
    std::function<void(const std::string&)> write;  // called by one thread
  };

  explicit Progress(std::size_t total);  // on stderr
  Progress(std::size_t total, Output);
  ~Progress();

  // Lasts as long as what is returned, which must not outlive this. On any thread, as all others
  // here.
  [[nodiscard]] std::shared_ptr<void> begin(const std::string& activity);
  // A step of the total is finished: `line` stays on screen.
  void finished(const std::string& line);
  // A line that counts nothing.
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
