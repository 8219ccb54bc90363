// A program of somebody else's, with all that it starts: it has a time limit, and when it is over
// nothing of it is left, wherever its processes went.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::agent {

struct Program {
  std::vector<std::string> command;  // the first is looked for on the PATH
  std::filesystem::path folder;      // where it runs
  std::filesystem::path input{};     // its standard input; "" for nothing
  // Variables of the environment beside those of this process.
  std::vector<std::pair<std::string, std::string>> variables{};
  double time_limit = 0;  // seconds
  double grace = 10;      // seconds between SIGTERM and SIGKILL
};

struct Ended {
  enum class How { exited, killed, timed_out, stopped };
  How how = How::exited;
  int status = 0;  // of exit(), or the signal that killed it; of the command, not of its children
  double seconds = 0;
};

// Runs the program and gives its output, standard error included, to `on_output` as it comes.
// Returns once neither it nor any descendant is left: what it leaves running is ended (SIGTERM,
// then SIGKILL), also what moved to a session of its own. The same happens at the time limit, when
// the end is asked for (util/stop.h; Ended::stopped), and when this process is killed. It is not
// isolated: it may do what this process may. Throws Error when it cannot be started. Several
// threads may run programs at once.
Ended run_program(const Program&, const std::function<void(std::string_view)>& on_output);

}  // namespace assay::agent
