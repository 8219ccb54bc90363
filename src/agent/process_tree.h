// Runs an external program and everything it starts, with a time limit. When it is over, none of
// its processes is left, wherever they moved.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::agent {

struct Program {
  std::vector<std::string> command;  // the first is looked up in PATH
  std::filesystem::path folder;      // working directory
  std::filesystem::path input{};     // file for standard input; "" for none
  // Environment variables in addition to this process's own.
  std::vector<std::pair<std::string, std::string>> variables{};
  double time_limit = 0;  // seconds
  double grace = 10;      // seconds between SIGTERM and SIGKILL
};

struct Ended {
  enum class How { exited, killed, timed_out, stopped };
  How how = How::exited;
  int status = 0;  // exit status or killing signal of the command itself
  double seconds = 0;
};

// Runs the program and passes its output, including standard error, to `on_output` as it arrives.
// Returns once neither it nor any descendant is left: what it leaves running is killed (SIGTERM,
// then SIGKILL), even if it moved to another session. The same happens at the time limit, on a stop
// request (util/stop.h; Ended::stopped), and if this process is killed. The program is not
// isolated: it may do whatever this process may. Throws Error if it cannot be started, or if some of
// it is left 10 s after SIGKILL. Several threads may run programs at once.
Ended run_program(const Program&, const std::function<void(std::string_view)>& on_output);

}  // namespace assay::agent
