// The harness's end of a line to a process that it does not trust.
//
// Nothing here ever blocks. Both ends are sockets of a pair, so each is an open file of its own:
// what the other side does to its end, to its flags or by leaving everything unread, does not reach
// ours, and no lock is shared but for moments. Besides, every call says for itself that it does not
// wait. Neither side can write what the other is to receive from itself, and sockets cannot be
// opened again through /proc.
//
// The harness holds the other end too, as long as the channel lives. So whoever closes it, or dies,
// is noticed by whoever watches the process, and nobody meets the end of a file in between.
#pragma once

#include <cstddef>
#include <string>

#include "util/fd.h"

namespace assay::processes {

class Channel {
 public:
  // `flags` of the other end, O_NONBLOCK for one. Throws Error when there are no descriptors left.
  explicit Channel(int flags = 0);

  int theirs() const { return theirs_.get(); }  // for the other process
  int ours() const { return ours_.get(); }      // to be polled for POLLIN, and for nothing else

  // One byte. False when the other side has left so much unread that it finds no room.
  bool send(char byte = 1) const;
  // How many bytes are waiting, taken away; more than `most` are not asked for.
  std::size_t take(std::size_t most) const;
  // What is waiting, appended; at most `most` bytes.
  void take(std::string& text, std::size_t most) const;

 private:
  Fd ours_, theirs_;
};

}  // namespace assay::processes
