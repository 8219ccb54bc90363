// Sends a Launch to the process that forks launchers (spawner.h).
//
// A Launch travels as one block of bytes with descriptors attached. On the way its pointers are
// offsets into the block, and its descriptors are positions among the attached ones.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "sandbox/launch.h"

namespace assay::sandbox {

class LaunchRequest {
 public:
  LaunchRequest() : block_(sizeof(Launch)) {}

  Launch launch;

  // Each adds to the block and returns the value for the field of `launch`.
  const char* text(const std::string&);
  std::span<const char* const> texts(const std::vector<std::string>& strings) {
    return values(put(strings));
  }
  // The same with a null behind the last, as execve wants them.
  std::span<const char* const> arguments(const std::vector<std::string>&);
  template <class T>
  std::span<const T> values(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t at = room(values.size() * sizeof(T));
    std::memcpy(block_.data() + at, values.data(), values.size() * sizeof(T));
    return {reinterpret_cast<const T*>(at), values.size()};  // NOLINT: an offset until it arrives
  }
  int descriptor(int fd);  // -1 stays -1
  std::span<const int> descriptors_of(const std::vector<int>& fds);

  // What to send, once `launch` is complete.
  const std::vector<std::byte>& block();
  const std::vector<int>& descriptors() const { return descriptors_; }

 private:
  std::vector<const char*> put(const std::vector<std::string>&);
  // Makes room at the end, aligned for any type, and returns its offset.
  std::size_t room(std::size_t bytes);

  std::vector<std::byte> block_;
  std::vector<int> descriptors_;
};

// The Launch in a block that was received, with pointers and descriptors put right in place.
// Async-signal-safe.
Launch& arrive(std::byte* block, const int* descriptors);

}  // namespace assay::sandbox
