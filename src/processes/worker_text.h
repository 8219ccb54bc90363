// What a submission prints on stdout and stderr, as far as the harness keeps it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "processes/channel.h"

namespace assay::processes {

class WorkerText {
 public:
  static constexpr std::size_t kLimit = 64 << 10;

  int theirs() const { return channel_.theirs(); }  // for the worker
  int ours() const { return channel_.ours(); }      // to be polled for POLLIN

  // Takes what is waiting. False once there is more than the limit, of which the rest is left.
  bool take();

  const std::string& kept() const { return kept_; }
  // The last lines, to be put behind a message; "" where nothing was printed.
  std::string note() const;

 private:
  Channel channel_;
  std::string kept_;
};

}  // namespace assay::processes
