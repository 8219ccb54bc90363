#include "cli/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "cli/context.h"
#include "util/remedy.h"
#include "util/text.h"

namespace assay::cli {

void tell(std::string_view text) {
  constexpr std::size_t kAll = static_cast<std::size_t>(-1);
  std::string safe = printable(text, kAll, kAll);
  if (text.ends_with('\n')) safe += '\n';
  std::fwrite(safe.data(), 1, safe.size(), stderr);
  std::fflush(stderr);
}

int after_output(int status) noexcept {
  errno = 0;
  std::cout.flush();
  const bool arrived = std::cout.good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  const int error = errno;
  if (arrived || status != kDone) return status;
  return output_failed(error);
}

int output_failed(int error) noexcept {
  if (error == EPIPE) return kNobodyReads;
  std::fprintf(stderr, "assay: cannot write to standard output: %s%s\n", std::strerror(error),
               remedy(error));
  return kUsageOrHarnessError;
}

std::string counted(std::size_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

}  // namespace assay::cli
