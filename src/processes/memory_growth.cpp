#include "processes/memory_growth.h"

#include <algorithm>

namespace assay::processes {

// Resident pages are not the submission's if they were there before it, belong to the case, or map
// its library's file. Anonymous ones are all its own that were not there before: it may also have
// made them of pages of files, which leaves the sum as it was.
std::uint64_t grown_by(const PageAccount& account, int cores) {
  constexpr std::uint64_t kPagesBesideFile = 4 * 4096;
  const std::uint64_t files = beyond(account.now.files, account.before.files);
  const std::uint64_t others = account.shared.of_case + account.shared.of_callbacks +
                               std::min(files, account.library + kPagesBesideFile);
  const std::uint64_t roughly =
      beyond(account.now.peak, account.before.sum() + others + counter_error(cores));
  if (!account.exactly_before || !account.exactly_at_most) return roughly;
  const Resident &before = *account.exactly_before, &most = *account.exactly_at_most;
  return std::max(
      {roughly, beyond(most.sum, before.sum + others), beyond(most.anonymous, before.anonymous)});
}

// The pages of the case are charged to the harness, which touched them first. Their page tables and
// the requests of callbacks are charged to the worker, so they are subtracted.
std::uint64_t grown_by(const GroupAccount& account, int cores) {
  const std::uint64_t tables = (account.shared.of_case + account.shared.of_callbacks) / 512;
  return beyond(account.peak, account.before + beyond(account.files_now, account.files_before) +
                                  tables + account.shared.of_callbacks + charge_error(cores));
}

// A library that does nothing, called from two threads, takes 50 KiB; the shipped answers take 10
// to 50 KiB on top of what they ask for. More is allowed if the figures are not exact. In CUDA the
// runtime also keeps what it needs of a library to load its kernels; a library may be padded, so
// that is bounded.
std::uint64_t uncounted_growth(int threads, bool exact, std::optional<std::uint64_t> cuda_library) {
  constexpr std::uint64_t kKilo = 1024, kRuntime = 1024 * kKilo, kMostOfLibrary = 4096 * kKilo;
  const auto n = static_cast<std::uint64_t>(threads);
  const std::uint64_t host = exact ? (32 + n * 16) * kKilo : (128 + n * 32) * kKilo;
  return cuda_library ? host + kRuntime + std::min(2 * *cuda_library, kMostOfLibrary) : host;
}

}  // namespace assay::processes
