// What a submission prints on stdout and stderr, up to a limit.
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
  int ours() const { return channel_.ours(); }      // poll it for POLLIN

  // Takes the waiting text. False once there is more than the limit; the rest stays unread.
  bool take();

  const std::string& kept() const { return kept_; }
  // The last lines, to append to a message; "" if nothing was printed.
  std::string note() const;

 private:
  Channel channel_;
  std::string kept_;
};

}  // namespace assay::processes
