// Shared memory between the harness and workers. It is sealed so that a worker can neither shrink
// it under the harness nor ever write to it if it holds input.
#pragma once

#include <cstddef>
#include <cstdint>

#include "util/fd.h"

namespace assay::processes {

class Arena {
 public:
  enum class Access { worker_reads, worker_writes };

  Arena(const char* name, std::size_t bytes, Access);
  ~Arena();
  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) = delete;

  int fd() const { return fd_.get(); }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // Bytes of the pages that have been written, by anyone and whether or not they are mapped now.
  std::uint64_t written() const;

 private:
  Fd fd_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace assay::processes
