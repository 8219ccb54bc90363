// The harness's end of a line to a process that it does not trust.
//
// Nothing here ever blocks. The two ends are a socket pair, so each end is a separate open file.
// Whatever the other side does to its end (its flags, unread data) does not affect ours, and no
// lock is shared for more than a moment. Every call also asks for non-blocking operation itself.
// Each side can write in its own direction only, and sockets cannot be reopened through /proc.
//
// The harness holds the other end open for as long as the channel lives, so nobody sees an early
// end-of-file. If the other process dies or closes its end, only those who watch the process
// notice.
#pragma once

#include <cstddef>
#include <string>

#include "util/fd.h"

namespace assay::processes {

class Channel {
 public:
  // `flags` of the other end, such as O_NONBLOCK. Throws Error when out of descriptors.
  explicit Channel(int flags = 0);

  int theirs() const { return theirs_.get(); }  // for the other process
  int ours() const { return ours_.get(); }      // poll it for POLLIN; use it for nothing else

  // Sends one byte. False if the buffer is full because the other side has not read.
  bool send(char byte = 1) const;
  // Takes waiting bytes, at most `most`, and returns how many there were.
  std::size_t take(std::size_t most) const;
  // Appends waiting bytes to `text`, at most `most`.
  void take(std::string& text, std::size_t most) const;

 private:
  Fd ours_, theirs_;
};

}  // namespace assay::processes
