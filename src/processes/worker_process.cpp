#include "processes/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <span>
#include <vector>

#include "assay/error.h"
#include "processes/cores.h"
#include "sandbox/runtime_files.h"
#include "sandbox/worker_image.h"
#include "sim/address_map.h"
#include "sim/runtime/run_log.h"
#include "util/text.h"
#include "util/transient_fault.h"

namespace assay::processes {
namespace {

using Clock = std::chrono::steady_clock;
using wire::Command, wire::Reply;

constexpr std::size_t kTextLimit = 64 << 10;
constexpr double kPingLimit = 10;  // of a call that does nothing
// A machine that is busy with other things makes nobody slow: time that a worker spent waiting for
// a processor is added to its limit, to at most so many times it. Threads of its own can make it
// wait too, hence the bound. Less than the smaller share is not worth another look.
constexpr double kMostGivenBack = 4, kLeastGivenBack = 0.02;
constexpr double kSimulationLimit =
    300;  // of the device in one call, beside the limit on instructions

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::max(seconds, 0.0) * 1e9));
}

const char* signal_hint(int signal) {
  switch (signal) {
    case SIGSEGV:
      return " (invalid memory access; also what writing to an input or overrunning the stack "
             "gives)";
    case SIGABRT: return " (abort: an uncaught exception, a failed assertion or heap corruption)";
    case SIGILL: return " (illegal instruction)";
    case SIGFPE: return " (integer division by zero)";
    case SIGBUS: return " (access beyond a mapping)";
    default: return "";
  }
}

int image_of(const WorkerSettings& settings, bool with_device) {
  if (settings.image_fd >= 0) return settings.image_fd;
  return with_device ? sandbox::cuda_worker_image_fd() : sandbox::worker_image_fd();
}

// Copies into the memory of a stopped child; false where the kernel or the address forbids it.
bool write_into(pid_t pid, std::uint64_t address, const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const iovec local{const_cast<std::byte*>(from), bytes},
        remote{reinterpret_cast<void*>(address), bytes};  // NOLINT: of the child
    const ssize_t n = ::process_vm_writev(pid, &local, 1, &remote, 1, 0);
    if (n <= 0) return false;
    from += n;
    address += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

// The function of the CUDA runtime that a submission asks for and the simulator does not know, from
// dlopen's message.
std::string missing_cuda_function(std::string_view message) {
  constexpr std::string_view kMark = "undefined symbol: ";
  const std::size_t at = message.find(kMark);
  if (at == std::string_view::npos) return {};
  const std::string_view name = message.substr(
      at + kMark.size(), message.find_first_of(" ,;\n", at + kMark.size()) - (at + kMark.size()));
  const bool cuda = name.starts_with("cuda") || name.starts_with("__cuda");
  return cuda ? printable(name, 1) : "";
}

// The functions of the CUDA runtime that the worker says were called and refused.
std::string refused_functions(const Channel& log) {
  constexpr std::size_t kMostBytes = 64 << 10;
  std::string bytes;
  log.take(bytes, kMostBytes);
  const std::vector<std::string> names = sim::summarise(bytes).unsupported;
  constexpr std::size_t kLongest = 1000;  // an instruction, its kernel and its place in full
  return names.empty() ? "" : printable(names.front(), 1, kLongest);
}

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kPage = 4096;

constexpr std::uint64_t beyond(std::uint64_t value, std::uint64_t of) {
  return value - std::min(value, of);
}

// Bytes of the pages that the ranges touch, each page once.
std::uint64_t bytes_of_pages(std::vector<std::pair<std::size_t, std::size_t>> ranges) {
  std::ranges::sort(ranges);
  std::size_t pages = 0, next = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin == end) continue;
    const std::size_t first = std::max(begin / kPage, next), last = (end - 1) / kPage;
    if (last >= first) pages += last + 1 - first;
    next = std::max(next, last + 1);
  }
  return pages * kPage;
}

// What of the two arenas a case's worker has to touch: header, descriptors, buffers.
std::uint64_t shared_bytes(const CasePlan& plan, const Layout& layout) {
  std::vector<std::pair<std::size_t, std::size_t>> input, output;
  input.emplace_back(0, layout.params_offset + plan.params.size());
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const wire::BufferSlot& slot = layout.slots[i];
    if (slot.null != 0 || layout.on_device[i]) continue;
    auto& ranges = slot.in_output != 0 ? output : input;
    if (slot.window == 0) {
      ranges.emplace_back(slot.offset, slot.offset + slot.bytes);
      continue;
    }
    const wire::Window& window = layout.windows[slot.window - 1];
    for (const auto& part : std::span(layout.parts).subspan(window.first_part, window.parts))
      ranges.emplace_back(part.offset, part.offset + part.bytes);
  }
  return bytes_of_pages(std::move(input)) + bytes_of_pages(std::move(output));
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerSettings& settings, Arena& input, std::size_t output_bytes,
                             Arena* device)
    : settings_(settings),
      input_(input),
      output_("output", output_bytes, Arena::Access::worker_writes),
      control_("control", sizeof(wire::Control), Arena::Access::worker_writes),
      log_(O_NONBLOCK) {
  const ChallengeSpec& spec = *settings_.spec;
  header() = wire::Header{};
  new (control_.data()) wire::Control;
  header().scratch_capacity = static_cast<std::uint64_t>(spec.limits.memory_bytes);
  header().nthreads = settings_.threads;
  describe_windows();

  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));

  sandbox::Program program;
  program.policy = sandbox::Policy::worker;
  program.mounts = sandbox::runtime_mounts(device != nullptr ? sandbox::Runtime::image
                                                             : sandbox::Runtime::answer);
  const sandbox::Mount library{settings_.library.string(), "/submission.so", false};
  program.mounts.push_back(library);
  program.exec_fd = image_of(settings_, device != nullptr);
  program.argv = {"worker", sandbox::visible(settings_.tier, library)};
  if (settings_.tier == sandbox::Tier::none) program.argv.emplace_back("--unsealed");
  // In descriptor order 0..6, with a device 0..9; see wire/worker.h. A submission that prints too
  // much waits until that is found out, instead of losing the rest.
  program.fds = {null.get(),  text_.theirs(), text_.theirs(), control_.fd(),
                 input_.fd(), output_.fd(),   line_.theirs()};
  if (device != nullptr) {
    device_ = std::make_unique<DeviceProcess>(settings_.tier, *settings_.device, *device);
    program.fds.insert(program.fds.end(), {device_->link_fd(), device_->call_fd(), log_.theirs()});
  }
  program.cores = worker_cores(settings_.threads);
  limit_memory(program);
  program.limits.cpu_seconds = static_cast<std::uint64_t>(settings_.cpu_limit_s);
  program.limits.processes = static_cast<std::uint64_t>(settings_.threads) + 8;
  process_ = sandbox::spawn(settings_.tier, program);
  if (process_.stop() == sandbox::Process::Stop::refused)
    throw TransientFault("a new worker does not stop");
}

WorkerProcess::~WorkerProcess() {
  if (!settings_.on_text) return;
  // What came behind the last reply is still in the channel.
  drain_text();
  settings_.on_text(captured_);
}

void WorkerProcess::describe_windows() {
  if (settings_.windows_of == nullptr) return;
  const Layout& layout = *settings_.windows_of;
  header().windows = static_cast<std::uint32_t>(layout.windows.size());
  header().windows_offset = static_cast<std::uint32_t>(layout.windows_offset);
  auto* const windows = reinterpret_cast<wire::Window*>(input_.data() + layout.windows_offset);
  auto* const behind = std::ranges::copy(layout.windows, windows).out;
  std::ranges::copy(layout.parts, reinterpret_cast<wire::WindowPart*>(behind));
}

// A group's limit is of what is touched, and the kernel says when it was reached. Without one the
// limit on address space is all there is; it has to leave room for what is only reserved.
void WorkerProcess::limit_memory(sandbox::Program& program) {
  constexpr std::uint64_t kRuntime = 512 * kMiB;  // libraries, stacks
  const auto limit = static_cast<std::uint64_t>(settings_.spec->limits.memory_bytes);
  const std::uint64_t arenas = input_.bytes() + output_.bytes();
  program.limits.address_space = arenas + kRuntime + 2 * limit;
  // Beside what the submission may have: page tables, and the runtime of CUDA.
  const std::uint64_t touched = limit + arenas / 256 + (device_ != nullptr ? 256 : 64) * kMiB;
  const sandbox::MemoryGroups& groups = sandbox::memory_groups();
  share_.emplace(arenas + (groups.version != 0 ? touched : program.limits.address_space - arenas));
  // Windows are address space that no memory backs. What a submission could put in their place is
  // bounded as before: it can make no shared memory, and its own is data.
  if (settings_.windows_of != nullptr) {
    program.limits.data = program.limits.address_space - arenas;
    program.limits.address_space += settings_.windows_of->window_bytes();
  }
  group_ = sandbox::MemoryGroup::make(groups, touched);
  if (group_ != nullptr) program.group_fd = group_->join_fd();
}

// What it is before the submission has come near it. The first reply proves that it has set itself
// up.
void WorkerProcess::take_baseline() {
  if (const std::int64_t listener = control().listener;
      header().watch_memory != 0 && listener >= 0) {
    watch_ = MemoryWatch::attach(process_.pid(), process_.pidfd(), static_cast<int>(listener));
    if (!watch_) throw Error("the kernel does not let a worker's memory be watched any more");
  }
  baseline_ = memory_figures(process_.pid());
  exact_baseline_ = exact_resident(process_.pid());
  if (group_ == nullptr) return;
  group_baseline_ = group_->usage().value_or(0);
  group_files_ = group_->file_bytes();
}

// Whether the kernel hands over a descriptor of the worker's; tried with one that it has.
bool WorkerProcess::can_be_watched() const {
  return MemoryWatch::attach(process_.pid(), process_.pidfd(), wire::kLineFd).has_value();
}

Outcome WorkerProcess::load() {
  const ChallengeSpec& spec = *settings_.spec;
  header().measures_memory = settings_.measures_memory ? 1 : 0;
  header().watch_memory = settings_.measures_memory && can_be_watched() ? 1 : 0;
  if (const Outcome ready = ping(); ready.verdict != Verdict::ok) {
    throw TransientFault("a worker does not start: " + ready.detail);
  }
  take_baseline();
  header().challenge = settings_.challenge;
  std::size_t n = 0;
  for (const std::string& symbol : spec.required_symbols) {
    if (n == wire::kMaxSymbols || symbol.size() >= wire::kMaxSymbolLength) {
      throw Error(fmt::format("{}: too many or too long required symbols", spec.name));
    }
    std::memcpy(header().symbols[n++], symbol.c_str(), symbol.size() + 1);
  }
  header().required_symbols = static_cast<std::uint32_t>(n);
  Outcome outcome = request_with_device(Command::load, spec.limits.load_time_s, nullptr,
                                        device::kLoading, kInstructionLimit);
  if (outcome.verdict == Verdict::ok && control().reply == Reply::load_failed) {
    char message[sizeof control().message];
    std::memcpy(message, control().message, sizeof message);
    message[sizeof message - 1] = '\0';
    const std::string missing = device_ == nullptr ? "" : missing_cuda_function(message);
    if (!missing.empty())
      return ended(Verdict::needs_gpu, fmt::format("needs a GPU ({})", missing));
    return ended(Verdict::load_error, printable(message, 3));
  }
  if (outcome.device && !outcome.device->unsupported.empty()) {
    return ended(Verdict::needs_gpu, fmt::format("needs a GPU ({})", outcome.device->unsupported));
  }
  // Any way to end while loading is a load error, except a forbidden system call.
  const bool dead = outcome.verdict != Verdict::ok;
  if (dead && outcome.verdict != Verdict::security_violation) {
    outcome.detail = "while loading: " + outcome.detail;
    outcome.verdict = Verdict::load_error;
  }
  return outcome;
}

Outcome WorkerProcess::set_case(const CasePlan& plan, const Layout& layout, std::uint64_t case_id) {
  layout_ = layout;
  case_bytes_ = shared_bytes(plan, layout);
  callback_bytes_ = 0;
  if (device_ != nullptr) {
    switch (device_->place(plan, layout_)) {
      case DeviceProcess::Placed::yes: break;
      case DeviceProcess::Placed::no_room:
        return ended(Verdict::memory_limit,
                     "what the submission keeps in device memory leaves no room for the case");
      case DeviceProcess::Placed::dead: return device_died();
    }
  }
  wire::Header& h = header();
  h.case_id = case_id;
  h.entry = plan.entry;
  h.nthreads = settings_.threads;
  h.buffers = static_cast<std::uint32_t>(layout.slots.size());
  h.buffers_offset = static_cast<std::uint32_t>(layout.slots_offset);
  h.params_bytes = static_cast<std::uint32_t>(plan.params.size());
  h.params_offset = static_cast<std::uint32_t>(layout.params_offset);
  h.callback_offset = layout.callback_request_offset;
  h.callback_response_offset = layout.callback_response_offset;
  std::copy(layout_.slots.begin(), layout_.slots.end(),
            reinterpret_cast<wire::BufferSlot*>(input_.data() + layout.slots_offset));
  std::copy(plan.params.begin(), plan.params.end(), input_.data() + layout.params_offset);
  return {};
}

Outcome WorkerProcess::ping() { return request(Command::ping, kPingLimit, nullptr); }

// Milliseconds, and what it takes to touch the bytes of the case and of what the worker has, on a
// slow and busy machine. Whoever holds a lock of the allocator, or computes meanwhile, is ended.
Outcome WorkerProcess::prepare() {
  constexpr double kWall = 5, kProcessor = 0.1, kSlowest = 100e6;  // seconds, bytes a second
  const auto touched =
      static_cast<double>(case_bytes_ + memory_figures(process_.pid()).anonymous) / kSlowest;
  return prepare_within(kWall + touched, kProcessor + touched);
}

Outcome WorkerProcess::prepare_within(double wall_s, double processor_s) {
  const double before = process_.cpu_seconds();
  Outcome outcome = request(Command::prepare, wall_s, nullptr);
  if (outcome.verdict == Verdict::time_limit || outcome.verdict == Verdict::idle_limit) {
    outcome.verdict = Verdict::protocol_violation;
    outcome.detail = "kept the worker from readying a case: " + outcome.detail;
    return outcome;
  }
  if (outcome.verdict != Verdict::ok) return outcome;
  if (const double spent = process_.cpu_seconds() - before; spent > processor_s) {
    return ended(Verdict::protocol_violation,
                 fmt::format("used {:.2f} s of processor time while a case was readied", spent));
  }
  return outcome;
}

Outcome WorkerProcess::run(int phase, const CaseSpec& spec, CallbackServer* server) {
  header().phase = phase;
  header().failing_allocation = spec.failing_allocation;
  header().guard_blocks =
      spec.group != CaseGroup::timed && spec.group != CaseGroup::resource ? 1 : 0;
  return request_with_device(Command::run, spec.time_limit_s, server, phase,
                             spec.instruction_limit);
}

Outcome WorkerProcess::collect(const CasePlan& plan) {
  if (device_ == nullptr) return {};
  std::string changed;
  if (!device_->collect(plan, changed)) return device_died();
  Outcome outcome;
  outcome.detail = changed;
  if (!changed.empty()) outcome.verdict = Verdict::device_error;
  return outcome;
}

void WorkerProcess::set_shuffle_seed(std::uint64_t seed) {
  if (device_ != nullptr) device_->set_shuffle_seed(seed);
}

Outcome WorkerProcess::request_with_device(Command command, double time_limit_s,
                                           CallbackServer* server, int phase,
                                           std::uint64_t instruction_limit) {
  if (device_ == nullptr) return request(command, time_limit_s, server);
  if (!device_->start(phase, instruction_limit)) {
    // Nothing of the submission has reached it before it is loaded.
    // Nothing of the submission has run yet.
    if (command == Command::load) throw TransientFault(device_->how_it_ended());
    return device_died();
  }
  const double before = device_->busy_seconds();
  Outcome outcome = request(command, time_limit_s, server);
  outcome.device_seconds = device_->busy_seconds() - before;
  take_report(outcome);
  return outcome;
}

// What the device saw counts however the request ended, unless the device ended with it.
void WorkerProcess::take_report(Outcome& outcome) {
  constexpr std::chrono::milliseconds kPatienceAfterFailure{2000};
  outcome.device =
      outcome.verdict == Verdict::ok ? device_->stop() : device_->stop(kPatienceAfterFailure);
  if (!outcome.device) {
    if (outcome.verdict == Verdict::ok) outcome = device_died();
    return;
  }
  if (const std::string refused = refused_functions(log_); !refused.empty()) {
    outcome.device->unsupported = refused;
  }
}

Outcome WorkerProcess::self_test(double time_limit_s, std::uint64_t instruction_limit) {
  constexpr int kOnlyPhase = 0;
  Outcome outcome =
      request_with_device(Command::self_test, time_limit_s, nullptr, kOnlyPhase, instruction_limit);
  if (outcome.verdict == Verdict::ok) outcome.detail = text_note();
  return outcome;
}

Outcome WorkerProcess::request(Command command, double time_limit_s, CallbackServer* server) {
  if (!alive_) throw Error("a request to a worker that has ended");
  if (line_.take(1) != 0) {
    return ended(Verdict::protocol_violation, "answered before it was asked");
  }
  header().command = command;
  Outcome outcome;
  const double processor_before = process_.cpu_seconds();
  double wall = 0;
  for (;;) {
    ++header().request;
    const auto t0 = Clock::now();
    if (!line_.send()) {
      return ended(Verdict::protocol_violation, "forged replies: it has not read its requests");
    }
    process_.resume();
    const double device_before = device_seconds();
    if (auto failure = await_reply(time_limit_s, outcome.seconds)) return *failure;
    const auto t1 = Clock::now();
    switch (process_.stop()) {
      case sandbox::Process::Stop::stopped: break;
      case sandbox::Process::Stop::ended: return died();
      case sandbox::Process::Stop::refused: return would_not_stop();
    }
    const auto t2 = Clock::now();
    if (process_.first_thread_ended()) {
      return ended(Verdict::runtime_error, "its first thread, which makes the calls, ended");
    }
    // A reply may be forged; what happens until the stop is then still running. A long stop is
    // charged, so nothing is gained by it.
    const double called =
        std::max(0.0, seconds_between(t0, t1) - (device_seconds() - device_before));
    const double stopping = seconds_between(t1, t2);
    outcome.seconds += called + (stopping > 0.01 * called + 50e-6 ? stopping : 0);
    wall += seconds_between(t0, t2);
    if (line_.take(2) != 1) {
      return ended(Verdict::protocol_violation, "forged a reply: answered more than once");
    }
    // A forged reply may have stopped the worker before it gave its own: then that is still to
    // come.
    if (control().answered != header().request) {
      return ended(Verdict::protocol_violation, "forged a reply: the call had not ended");
    }
    if (control().reply != Reply::callback) break;
    if (command != Command::run || server == nullptr || layout_.callback_response_offset == 0) {
      return ended(Verdict::protocol_violation, "called back although the case has no callbacks");
    }
    answer(server);
    if (const std::string why = server->given_up(); !why.empty())
      return ended(Verdict::protocol_violation, why);
  }
  if (drain_text()) return ended(Verdict::output_limit, "more than 64 KiB on stdout and stderr");
  if (const auto why =
          why_too_many_cores(process_.cpu_seconds() - processor_before, wall, settings_.threads)) {
    return ended(Verdict::protocol_violation, *why);
  }
  outcome.status = control().status;
  outcome.scratch_peak = control().scratch_peak;
  outcome.allocations = control().allocations;
  outcome.kept_blocks = control().kept_blocks;
  if (const std::uint64_t side = control().overrun_side; side == 1 || side == 2) {
    outcome.overrun =
        fmt::format("wrote {} a block of {} bytes that ctx->alloc gave",
                    side == 1 ? "before the start of" : "past the end of", control().overrun_bytes);
  }
  return outcome;
}

// Waits until a reply has come; an outcome when the worker ended or must end instead. Of the limit,
// `spent` has gone before the latest callback.
std::optional<Outcome> WorkerProcess::await_reply(double time_limit_s, double spent) {
  const auto start = Clock::now();
  const double device_before = device_seconds();
  double given_back = 0;  // of the time in which it was ready and others had the processors
  for (;;) {
    pollfd entries[] = {{line_.ours(), POLLIN, 0},
                        {process_.pidfd(), POLLIN, 0},
                        {text_.ours(), POLLIN, 0},
                        {device_ == nullptr ? -1 : device_->pidfd(), POLLIN, 0},
                        {watch_ ? watch_->fd() : -1, POLLIN, 0}};
    const double device_spent = device_seconds() - device_before;
    if (device_spent > kSimulationLimit) {
      return ended(
          Verdict::time_limit,
          fmt::format("its kernels took more than {:.0f} s to simulate", kSimulationLimit));
    }
    const auto deadline = start + nanoseconds(time_limit_s - spent + device_spent + given_back);
    const auto left = std::max<std::chrono::nanoseconds>(deadline - Clock::now(), {});
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    const int ready = ::ppoll(entries, std::size(entries), &timeout, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    if (entries[0].revents != 0) return std::nullopt;
    if (entries[1].revents != 0) return died();
    if (entries[3].revents != 0) return device_died();
    if (ready == 0 && device_seconds() - device_before <= device_spent) {
      const double queued = std::min(process_.queued_seconds(), kMostGivenBack * time_limit_s);
      if (queued < given_back + kLeastGivenBack * time_limit_s)
        return timed_out(time_limit_s, given_back);
      given_back = queued;
    }
    if (entries[4].revents != 0) watch_->serve();
    if (entries[2].revents != 0 && drain_text()) {
      return ended(Verdict::output_limit, "more than 64 KiB on stdout and stderr");
    }
  }
}

// Serves one callback while the worker is stopped. The bulk of the answer is written into the
// worker's memory, wherever it asked for it: that can harm nothing but the worker. Where the kernel
// or the address forbids it the worker copies, and faults, itself.
void WorkerProcess::answer(CallbackServer* server) {
  const std::size_t request_bytes =
      std::min<std::size_t>(control().callback_request_bytes, kCallbackPayload);
  const std::size_t response_bytes =
      std::min<std::size_t>(control().callback_response_bytes, kCallbackPayload);
  const std::size_t bulk_bytes =
      std::min<std::size_t>(control().callback_bulk_bytes, kCallbackPayload - response_bytes);
  const std::uint64_t address = control().callback_bulk_address;
  std::byte* response = input_.data() + layout_.callback_response_offset;
  header().callback_status = server->serve(
      control().callback_kind, {output_.data() + layout_.callback_request_offset, request_bytes},
      {response, response_bytes + bulk_bytes});
  const bool to_device = device_ != nullptr && sim::kGlobalRange.contains(address);
  const bool written =
      bulk_bytes > 0 &&
      (to_device ? device_->write(address, {response + response_bytes, bulk_bytes})
                 : write_into(process_.pid(), address, response + response_bytes, bulk_bytes));
  header().callback_bulk_written = written ? 1 : 0;
  // Room for what the server made sense of; other sizes are claims.
  if (header().callback_status == ASSAY_OK) {
    callback_bytes_ = std::max(
        callback_bytes_, bytes_of_pages({{layout_.callback_request_offset,
                                          layout_.callback_request_offset + request_bytes}}) +
                             bytes_of_pages({{layout_.callback_response_offset,
                                              layout_.callback_response_offset + response_bytes +
                                                  (written ? 0 : bulk_bytes)}}));
  }
  if (device_ != nullptr) device_->answered_on_host(response_bytes + (to_device ? 0 : bulk_bytes));
}

Outcome WorkerProcess::timed_out(double time_limit_s, double given_back) {
  process_.kill();
  const double cpu = process_.wait({}).value_or(sandbox::Exit{}).cpu_seconds();
  Outcome outcome = ended(
      cpu < 0.3 * time_limit_s ? Verdict::idle_limit : Verdict::time_limit,
      fmt::format("no reply within {:.3g} s{} ({:.2f} s of processor time used)", time_limit_s,
                  given_back > 0
                      ? fmt::format(" and {:.3g} s in which others had the processors", given_back)
                      : "",
                  cpu));
  outcome.seconds = time_limit_s;
  return outcome;
}

Outcome WorkerProcess::would_not_stop() {
  return ended(Verdict::protocol_violation, "it did not stop when it was told to");
}

// The verdict for a process that ended by itself.
Outcome WorkerProcess::died() {
  drain_text();
  const auto exit = process_.wait(std::chrono::seconds(5));
  if (!exit) throw Error("a worker neither runs nor ends");
  const int status = exit->status;
  if (WIFEXITED(status)) {
    return ended(
        Verdict::runtime_error,
        fmt::format("the process exited with status {} during the call", WEXITSTATUS(status)));
  }
  const int signal = WTERMSIG(status);
  const auto limit_mib = static_cast<double>(settings_.spec->limits.memory_bytes) / 1048576.0;
  const double resident_mib = static_cast<double>(exit->usage.ru_maxrss) / 1024.0;
  const double arenas_mib = static_cast<double>(input_.bytes() + output_.bytes()) / 1048576.0;
  if (signal == SIGSYS) {
    return ended(Verdict::security_violation, "made a system call that submissions may not make");
  }
  if (signal == SIGKILL && group_ != nullptr && group_->ran_out()) {
    return ended(Verdict::memory_limit,
                 fmt::format("the kernel ended it at the memory limit of {:.0f} MiB", limit_mib));
  }
  if (signal == SIGXCPU) {
    return ended(Verdict::time_limit, "used up the processor time of the whole worker");
  }
  const bool memory = captured_.find("bad_alloc") != std::string::npos ||
                      resident_mib - arenas_mib > 0.9 * limit_mib;
  return ended(
      Verdict::runtime_error,
      fmt::format(
          "ended by {}{}{}", strsignal(signal), signal_hint(signal),
          memory ? fmt::format(" (memory suspected: the limit is {:.0f} MiB)", limit_mib) : ""));
}

// The device serves nobody but this worker and the harness, so what ends it came over the link or
// was a kernel.
Outcome WorkerProcess::device_died() {
  device_lost_ = true;
  const std::string how = device_->how_it_ended();
  return ended(device_->out_of_time() ? Verdict::time_limit : Verdict::runtime_error, how);
}

Outcome WorkerProcess::ended(Verdict verdict, std::string detail) {
  if (!process_.kill()) {
    alive_ = false;
    throw Error("a worker was killed and does not end: the kernel holds it");
  }
  alive_ = false;
  Outcome outcome;
  outcome.verdict = verdict;
  outcome.detail = std::move(detail) + text_note();
  return outcome;
}

// Reads what the submission printed; true when it is over the limit.
bool WorkerProcess::drain_text() {
  text_.take(captured_, kTextLimit + 1 - std::min(captured_.size(), kTextLimit));
  return captured_.size() > kTextLimit;
}

// The last lines of its output, for messages.
std::string WorkerProcess::text_note() const {
  if (captured_.empty()) return {};
  constexpr std::size_t kTail = 300;
  const std::size_t begin = captured_.size() > kTail ? captured_.size() - kTail : 0;
  return "; its output ends: " + printable(std::string_view(captured_).substr(begin), 3);
}

void WorkerProcess::reset_peak() {
  reset_memory_peak(process_.pid());
  if (group_ != nullptr) group_->reset_peak();
  if (watch_) watch_->reset();
}

// What is no scratch of the submission's and no file: relocations, the linker's bookkeeping, an
// allocator's, stacks. A library that does nothing, called from two threads, takes 50 KiB; the
// shipped answers take 10 to 50 KiB beside what they ask for. More where the figures are not exact.
// In CUDA the runtime keeps of a library what it needs to load its kernels.
std::uint64_t WorkerProcess::uncounted_growth() const {
  const auto threads = static_cast<std::uint64_t>(settings_.threads);
  const std::uint64_t host =
      watch_ ? 32 * kKiB + threads * 16 * kKiB : 128 * kKiB + threads * 32 * kKiB;
  return device_ == nullptr ? host : host + kMiB + 2 * library_bytes();
}

std::uint64_t WorkerProcess::library_bytes() const {
  std::error_code ec;
  const std::uintmax_t bytes = std::filesystem::file_size(settings_.library, ec);
  return ec ? 0 : bytes;
}

// Of the resident pages those are not the submission's which were there before it, belong to the
// case or show its library's file.
std::uint64_t WorkerProcess::grown_by_pages() const {
  const MemoryFigures now = memory_figures(process_.pid());
  const std::uint64_t files = now.files - std::min(now.files, baseline_.files);
  const std::uint64_t others =
      case_bytes_ + callback_bytes_ + std::min(files, library_bytes() + 4 * kPage);
  const std::uint64_t then =
      beyond(now.peak, baseline_.sum() + others + counter_error(settings_.threads));
  const std::optional<std::uint64_t> now_exactly = exact_resident(process_.pid());
  if (!now_exactly || !exact_baseline_) return then;
  const std::uint64_t exactly = std::max(*now_exactly, watch_ ? watch_->peak() : 0);
  return std::max(then, beyond(exactly, *exact_baseline_ + others));
}

// The pages of the case are charged to the harness, which was the first to touch them; their tables
// are not, nor are requests of callbacks.
std::uint64_t WorkerProcess::grown_by_group() const {
  const std::optional<std::uint64_t> peak = group_ == nullptr ? std::nullopt : group_->peak();
  if (!peak) return 0;
  const std::uint64_t tables = (case_bytes_ + callback_bytes_) / 512;
  return beyond(*peak, group_baseline_ + beyond(group_->file_bytes(), group_files_) + tables +
                           callback_bytes_ + charge_error(settings_.threads));
}

std::uint64_t WorkerProcess::peak_growth() const {
  return beyond(std::max(grown_by_pages(), grown_by_group()), uncounted_growth());
}

}  // namespace assay::processes
