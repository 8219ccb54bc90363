// Progress of a long command: one rewritten line on a terminal, plain lines in a pipe.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>

namespace assay::cli {

class Progress {
 public:
  explicit Progress(std::size_t total);
  ~Progress();

  // What is being done now; only shown on a terminal.
  void status(const std::string& text);
  // A step is finished: `text` stays on screen.
  void finished(const std::string& text);
  // A line that counts nothing.
  void note(const std::string& text);

 private:
  void clear();
  void show();

  std::mutex mutex_;
  bool terminal_;
  std::size_t total_, done_ = 0;
  std::string status_;
};

}  // namespace assay::cli
