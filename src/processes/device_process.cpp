#include "processes/device_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "assay/error.h"
#include "processes/gpu_machine.h"
#include "sandbox/driver_files.h"
#include "sandbox/runtime_files.h"
#include "sandbox/worker_image.h"
#include "util/clock.h"
#include "util/text.h"
#include "util/transient_fault.h"

namespace assay::processes {
namespace {

using device::Order;

// Hostile text from the device process, made a string.
template <std::size_t n>
std::string text_of(const char (&text)[n]) {
  return printable(std::string_view(text, ::strnlen(text, n)), 4, 600);
}

}  // namespace

DeviceProcess::DeviceProcess(sandbox::Tier tier, const DeviceSettings& settings, Arena& arena)
    : name_(settings.is_real() ? "the process of the GPU" : "the simulated device"),
      arena_(arena),
      control_("device control", sizeof(device::Control), Arena::Access::worker_writes),
      link_("device link", device::kLinkBytes, Arena::Access::worker_writes),
      text_(O_NONBLOCK) {
  new (control_.data()) device::Control;
  // The device must not block on the worker, so its end of this channel is non-blocking too.
  if (::fcntl(call_.ours(), F_SETFL, O_NONBLOCK) != 0) throw_errno("cannot set up a socket");
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  sandbox::Program program;
  program.policy = sandbox::Policy::worker;
  program.mounts = sandbox::runtime_mounts(sandbox::Runtime::image);
  program.exec_fd = settings.image_fd >= 0 ? settings.image_fd : sandbox::device_image_fd();
  program.argv = {"device", std::to_string(settings.memory_bytes),
                  std::to_string(settings.threads)};
  // In descriptor order 0..7; see wire/device.h.
  program.fds = {null.get(),  text_.theirs(),  text_.theirs(), control_.fd(),
                 arena_.fd(), order_.theirs(), link_.fd(),     call_.ours()};
  // No limit on address space: the simulator reserves far more than it touches. What it touches is
  // bounded by memory_bytes and by the size of a message.
  program.limits.processes = settings.threads + 8;
  if (settings.is_real()) {
    tier = sandbox::tier_for_driver();
    make_fit_for_driver(tier, program, {settings.gpu->driver});
    show_gpu(*settings.gpu, program);
  }
  process_ = sandbox::spawn(tier, program);
}

bool DeviceProcess::order(Order order, std::chrono::milliseconds patience) {
  if (!usable_) return false;
  control().order = order;
  usable_ = false;
  if (!order_.send()) return false;
  for (;;) {
    pollfd entries[] = {{order_.ours(), POLLIN, 0}, {process_.pidfd(), POLLIN, 0}};
    const int ready = ::poll(entries, 2, static_cast<int>(patience.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (entries[0].revents == 0) return false;
    usable_ = order_.take(2) == 1;
    return usable_;
  }
}

static_assert(device::kGuardBytes <= kCanaryBytes);

DeviceProcess::Placed DeviceProcess::place(const CasePlan& plan, Layout& layout) {
  handles_.clear();
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    if (!layout.on_device[i]) continue;
    if (handles_.size() == device::kMaxBuffers)
      throw Error("a case has too many buffers for the device");
    const wire::BufferSlot& slot = layout.slots[i];
    const BufferPlan& buffer = plan.buffers[i];
    device::Buffer& to = control().buffer[handles_.size()];
    to = {.offset = slot.offset,
          .bytes = slot.bytes,
          .skew = static_cast<std::uint32_t>(misalignment(plan, buffer, Memory::device)),
          .phase = buffer.phase,
          .output = buffer.role != Role::input,
          .until = buffer.until};
    handles_.push_back(i);
  }
  control().buffers = static_cast<std::uint32_t>(handles_.size());
  if (!order(Order::place)) return Placed::dead;
  if (control().ok == 0) return Placed::no_room;
  for (std::size_t n = 0; n < handles_.size(); ++n) {
    layout.slots[handles_[n]].device = control().buffer[n].address;
  }
  return Placed::yes;
}

bool DeviceProcess::start(int phase, std::uint64_t instruction_limit) {
  control().phase = phase;
  control().instruction_limit = instruction_limit;
  answered_on_host_ = 0;
  return order(Order::start);
}

std::optional<DeviceReport> DeviceProcess::stop(std::chrono::milliseconds patience) {
  if (!order(Order::stop, patience)) return std::nullopt;
  device::Report said;
  std::memcpy(&said, &control().report, sizeof said);
  DeviceReport report;
  report.work = {.counters = std::bit_cast<sim::Counters>(said.counters),
                 .to_device_bytes = said.to_device_bytes,
                 .to_host_bytes = said.to_host_bytes + answered_on_host_,
                 .within_bytes = said.within_bytes,
                 .transfers = said.transfers,
                 .device_bytes = said.peak_bytes};
  report.findings = said.findings;
  report.first_finding = text_of(said.first_finding);
  report.unsupported = text_of(said.unsupported);
  report.invalid_ptx = text_of(said.invalid_ptx);
  report.refused = text_of(said.refused);
  report.over_limit = said.over_limit != 0 ? control().instruction_limit : 0;
  report.seconds = said.seconds;
  return report;
}

bool DeviceProcess::collect(const CasePlan& plan, std::string& changed) {
  changed.clear();
  if (!order(Order::collect)) return false;
  const std::int32_t n = control().changed;
  if (n >= 0 && static_cast<std::size_t>(n) < handles_.size()) {
    changed =
        fmt::format("wrote to the input {} (byte {})",
                    plan.buffers[handles_[static_cast<std::size_t>(n)]].name, control().changed_at);
  }
  char undefined[sizeof control().undefined];
  std::memcpy(undefined, control().undefined, sizeof undefined);
  if (changed.empty()) changed = text_of(undefined);
  return true;
}

bool DeviceProcess::write(std::uint64_t address, std::span<const std::byte> bytes) {
  if (bytes.size() > kCallbackPayload) return false;
  const std::size_t offset = arena_.bytes() - kCallbackPayload;
  std::memcpy(arena_.data() + offset, bytes.data(), bytes.size());
  control().address = address;
  control().offset = offset;
  control().bytes = bytes.size();
  return order(Order::write) && control().ok != 0;
}

double DeviceProcess::busy_seconds() const {
  const std::uint64_t now = steady_nanoseconds();
  const std::uint64_t since = control().busy_since.load(), done = control().busy_ns.load();
  const std::uint64_t present = since != 0 && since < now ? now - since : 0;
  return static_cast<double>(done + present) * 1e-9;
}

std::string DeviceProcess::how_it_ended() {
  std::string said;
  text_.take(said, 512);
  const auto exit = process_.wait(std::chrono::seconds(1));
  usable_ = false;
  std::string text = name_ + " does not answer";
  if (exit && WIFSIGNALED(exit->status)) {
    text = fmt::format("{} was ended by {}", name_, strsignal(WTERMSIG(exit->status)));
  } else if (exit && WEXITSTATUS(exit->status) == device::kOutOfTime) {
    out_of_time_ = true;
    text = name_ + " did not get done within the time of its phase";
  } else if (exit && WEXITSTATUS(exit->status) == device::kGpuFailed) {
    gpu_failed_ = true;
    text = name_ + " lost its GPU";
  } else if (exit) {
    text = fmt::format("{} ended with status {}", name_, WEXITSTATUS(exit->status));
  }
  return said.empty() ? text : text + ": " + printable(said, 3);
}

}  // namespace assay::processes
