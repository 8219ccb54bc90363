// The error log that cuModuleLoadDataEx fills on request.
#pragma once

#include <string_view>

namespace assay::gpu {

class JitLog {
 public:
  // The options of cuModuleLoadDataEx. Only those of the error log are used.
  JitLog(unsigned options, const int* names, void** values);

  // Cut to fit the buffer, including the NUL. Stores the number of bytes, as the driver does.
  void write(std::string_view text) const;

 private:
  char* buffer_ = nullptr;
  void** bytes_ = nullptr;  // the value itself is the size of the buffer
};

}  // namespace assay::gpu
