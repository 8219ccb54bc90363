#include "processes/worker_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "util/files.h"
#include "util/transient_fault.h"

namespace assay::processes {

WorkerMemory::WorkerMemory(const WorkerSettings& settings, std::uint64_t arenas, bool in_cuda)
    : library_(settings.library),
      limit_(static_cast<std::uint64_t>(settings.spec->limits.memory_bytes)),
      arenas_(arenas),
      threads_(settings.threads),
      in_cuda_(in_cuda) {}

// A group limits what is touched, and the kernel reports when that limit is reached. Without a
// group there is only the limit on address space, which must leave room for what is merely
// reserved.
void WorkerMemory::limit(sandbox::Program& program, const Layout* windows) {
  constexpr std::uint64_t kMega = 1024 * 1024, kRuntime = 512 * kMega;  // libraries, stacks
  program.limits.address_space = arenas_ + kRuntime + 2 * limit_;
  // In addition to the submission's limit: page tables, and the CUDA runtime.
  const std::uint64_t touched = limit_ + arenas_ / 256 + (in_cuda_ ? 256 : 64) * kMega;
  const sandbox::MemoryGroups& groups = sandbox::memory_groups();
  share_.emplace(arenas_ +
                 (groups.version != 0 ? touched : program.limits.address_space - arenas_));
  // Windows are address space without memory. What a submission could map in their place is still
  // bounded: it cannot make shared memory, and private memory counts as data.
  if (windows != nullptr) {
    program.limits.data = program.limits.address_space - arenas_;
    program.limits.address_space += windows->window_bytes();
  }
  group_ = sandbox::MemoryGroup::make(groups, touched);
  if (groups.version == 0) return;
  if (group_ == nullptr) {
    throw TransientFault(fmt::format("cannot make a memory group in {}, where others could be made",
                                     groups.folder.string()));
  }
  program.group_fd = group_->join_fd();
}

bool WorkerMemory::can_be_watched(const sandbox::Process& worker) {
  return exact_resident(worker.pid()).has_value();
}

void WorkerMemory::begin(const sandbox::Process& worker, Fd listener) {
  if (listener) watch_.emplace(worker.pid(), std::move(listener));
  baseline_ = memory_figures(worker.pid());
  exact_baseline_ = exact_resident(worker.pid());
  if (group_ == nullptr) return;
  group_baseline_ = group_->usage().value_or(0);
  group_files_ = group_->file_bytes();
}

void WorkerMemory::set_case(const CasePlan& plan, const Layout& layout) {
  shared_ = {.of_case = bytes_of_case(plan, layout)};
}

void WorkerMemory::count_callback(ByteRange request, ByteRange response) {
  shared_.of_callbacks = std::max(shared_.of_callbacks, bytes_of_callback(request, response));
}

std::uint64_t WorkerMemory::bytes_to_ready(pid_t pid) const {
  return shared_.of_case + memory_figures(pid).anonymous;
}

void WorkerMemory::reset_peak(pid_t pid) {
  reset_memory_peak(pid);
  if (group_ != nullptr) group_->reset_peak();
  if (watch_) watch_->reset();
}

std::uint64_t WorkerMemory::library_bytes() const {
  std::error_code ec;
  const std::uintmax_t bytes = std::filesystem::file_size(library_, ec);
  return ec ? 0 : bytes;
}

std::uint64_t WorkerMemory::grown_by_pages(pid_t pid) const {
  PageAccount account{.before = baseline_,
                      .now = memory_figures(pid),
                      .exactly_before = exact_baseline_,
                      .exactly_at_most = exact_resident(pid),
                      .shared = shared_,
                      .library = library_bytes()};
  if (account.exactly_at_most && watch_) account.exactly_at_most->raise_to(watch_->peak());
  return grown_by(account, threads_);
}

std::uint64_t WorkerMemory::grown_by_group() const {
  const std::optional<std::uint64_t> peak = group_ == nullptr ? std::nullopt : group_->peak();
  if (!peak) return 0;
  return grown_by(GroupAccount{.before = group_baseline_,
                               .files_before = group_files_,
                               .peak = *peak,
                               .files_now = group_->file_bytes(),
                               .shared = shared_},
                  threads_);
}

std::uint64_t WorkerMemory::peak_growth(pid_t pid) const {
  const std::uint64_t grown =
      std::max(grown_by_pages(pid), grown_by_group()) + beyond(written_, shared_.of_callbacks);
  const auto cuda_library = in_cuda_ ? std::optional(library_bytes()) : std::nullopt;
  return beyond(grown, uncounted_growth(threads_, watch_.has_value(), cuda_library));
}

}  // namespace assay::processes
