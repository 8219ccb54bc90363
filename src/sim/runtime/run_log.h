// What happened on the device while a program ran. Written as it happens, so that a program that
// crashes or exits early loses nothing, and read by the process that started the program.
//
// The log is a file of records; a truncated record ends it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/counters.h"
#include "sim/finding.h"
#include "sim/line_counts.h"
#include "sim/line_replays.h"
#include "sim/occupancy.h"

namespace assay::sim {

struct LaunchRecord {
  std::string kernel;  // mangled
  Residency residency;
  Counters counters;
  std::vector<Finding> findings;
  std::vector<LineReplays> replays;
  std::vector<LineCounts> lines{};
};

class RunLog {
 public:
  // A descriptor open for appending, not closed here; -1: nothing is logged.
  explicit RunLog(int fd) : fd_(fd) {}

  void launch(const LaunchRecord&);
  void finding(const Finding&);  // of no launch: made when the host read what kernels had left
  void unsupported(
      std::string_view what);             // "cudaGraphInstantiate", or an instruction and its place
  void not_loaded(std::string_view why);  // the program did not start
  void note(std::string_view text);       // a sentence for the reader of the report

 private:
  void append(std::uint32_t kind, std::string_view payload);
  int fd_;
};

struct KernelSummary {
  std::string name;  // mangled
  std::uint64_t launches = 0;
  Residency residency;               // of the launch that let the fewest warps be resident
  Counters counters;                 // the sum over the launches
  std::vector<LineReplays> replays;  // likewise, in the form of by_line()
  std::vector<LineCounts> lines;     // likewise, in the form of by_place()
};

struct RunSummary {
  std::vector<KernelSummary> kernels;  // in the order of their first launch
  // A finding at the same place in several launches is listed once, with the sum of the counts.
  std::vector<Finding> findings;
  std::vector<std::string> unsupported, notes;  // each once
  std::string not_loaded;
};

// `log` is the whole text that was written; accepts any bytes.
RunSummary summarise(std::string_view log);

}  // namespace assay::sim
