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
#include <iterator>
#include <vector>

#include "assay/error.h"
#include "processes/cores.h"
#include "sandbox/runtime_files.h"
#include "sandbox/worker_image.h"
#include "sim/address_map.h"
#include "sim/runtime/run_log.h"
#include "util/pass_descriptor.h"
#include "util/text.h"
#include "util/transient_fault.h"

namespace assay::processes {
namespace {

using Clock = std::chrono::steady_clock;
using wire::Command, wire::Reply;

constexpr double kPingLimit = 10;  // seconds, for a call that does nothing
// A submission must not pay for other load on the machine: time that others took from its worker
// (lost_time.h) extends the limit, up to kMostGivenBack times the limit. It is looked at again only
// if it grew by kLeastGivenBack of the limit.
constexpr double kMostGivenBack = 4, kLeastGivenBack = 0.02;
// Elapsed seconds of device time allowed in one call. The device's own limit, of processor time,
// ends a call long before, unless the machine is several times overcommitted.
constexpr double kSimulationLimit = 900;

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::max(seconds, 0.0) * 1e9));
}

int image_of(const WorkerSettings& settings, bool with_device) {
  if (settings.image_fd >= 0) return settings.image_fd;
  return with_device ? sandbox::cuda_worker_image_fd() : sandbox::worker_image_fd();
}

enum class Written { all, to_no_memory, forbidden };

// Copies into the memory of a stopped child, unless there is none at the address or the kernel
// forbids it.
Written write_into(pid_t pid, std::uint64_t address, const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const iovec local{const_cast<std::byte*>(from), bytes},
        remote{reinterpret_cast<void*>(address), bytes};  // NOLINT: of the child
    const ssize_t n = ::process_vm_writev(pid, &local, 1, &remote, 1, 0);
    if (n <= 0) return n < 0 && errno != EFAULT ? Written::forbidden : Written::to_no_memory;
    from += n;
    address += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return Written::all;
}

// The refused call of a CUDA runtime function that the worker reported first, or "".
std::string refused_functions(const Channel& log) {
  constexpr std::size_t kMostBytes = 64 << 10;
  std::string bytes;
  log.take(bytes, kMostBytes);
  const std::vector<std::string> names = sim::summarise(bytes).unsupported;
  constexpr std::size_t kLongest = 1000;  // an instruction, its kernel and its place, in full
  return names.empty() ? "" : printable(names.front(), 1, kLongest);
}

Diagnosis too_much_text() {
  return {Verdict::output_limit,
          fmt::format("more than {} KiB on stdout and stderr", WorkerText::kLimit >> 10)};
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerSettings& settings, Arena& input, std::size_t output_bytes,
                             Arena* device)
    : settings_(settings),
      input_(input),
      output_("output", output_bytes, Arena::Access::worker_writes),
      control_("control", sizeof(wire::Control), Arena::Access::worker_writes),
      log_(O_NONBLOCK),
      memory_(settings, input.bytes() + output_.bytes(), device != nullptr) {
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
  // In descriptor order 0..7, with a device 0..10; see wire/worker.h. The text channel blocks: a
  // submission that prints too much waits until it is found out, instead of losing output.
  program.fds = {null.get(),  text_.theirs(), text_.theirs(), control_.fd(),
                 input_.fd(), output_.fd(),   line_.theirs(), handover_.theirs()};
  if (device != nullptr) {
    device_ = std::make_unique<DeviceProcess>(settings_.tier, *settings_.device, *device);
    program.fds.insert(program.fds.end(), {device_->link_fd(), device_->call_fd(), log_.theirs()});
  }
  program.cores = worker_cores(settings_.threads);
  cores_ = static_cast<int>(program.cores.size());
  memory_.limit(program, settings_.windows_of);
  program.limits.cpu_seconds = static_cast<std::uint64_t>(settings_.cpu_limit_s);
  program.limits.processes = static_cast<std::uint64_t>(settings_.threads) + 8;
  process_ = sandbox::spawn(settings_.tier, program);
  if (process_.stop() == sandbox::Process::Stop::refused)
    throw TransientFault("a new worker does not stop");
}

WorkerProcess::~WorkerProcess() {
  if (!settings_.on_text) return;
  // Text printed after the last reply is still in the channel.
  text_.take();
  settings_.on_text(text_.kept());
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

Outcome WorkerProcess::load() {
  const ChallengeSpec& spec = *settings_.spec;
  header().measures_memory = settings_.measures_memory ? 1 : 0;
  header().watch_memory =
      settings_.measures_memory && WorkerMemory::can_be_watched(process_) ? 1 : 0;
  if (const Outcome ready = ping(); ready.verdict != Verdict::ok) {
    throw TransientFault("a worker does not start: " + ready.detail);
  }
  // The first reply proves that the worker has set itself up, before the submission is loaded.
  memory_.begin(process_, take_descriptor(handover_.ours()));
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
  if (outcome.verdict == Verdict::ok && control().reply == Reply::load_failed)
    return ended(diagnose_load_failure(load_message(), device_ != nullptr));
  if (outcome.device && !outcome.device->unsupported.empty())
    return ended(needs_gpu(outcome.device->unsupported));
  return while_loading(std::move(outcome));
}

// Hostile, and possibly not terminated.
std::string WorkerProcess::load_message() const {
  char message[sizeof control().message];
  std::memcpy(message, control().message, sizeof message);
  message[sizeof message - 1] = '\0';
  return message;
}

Outcome WorkerProcess::set_case(const CasePlan& plan, const Layout& layout, std::uint64_t case_id) {
  layout_ = layout;
  memory_.set_case(plan, layout);
  if (device_ != nullptr) {
    switch (device_->place(plan, layout_)) {
      case DeviceProcess::Placed::yes: break;
      case DeviceProcess::Placed::no_room:
        return ended({Verdict::memory_limit,
                      "what the submission keeps in device memory leaves no room for the case"});
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

// Normally takes milliseconds, plus the time to touch the bytes of the case and of the worker on a
// slow, busy machine. A submission that holds the allocator lock or burns CPU here is killed.
Outcome WorkerProcess::prepare() {
  constexpr double kWall = 5, kProcessor = 0.1, kSlowest = 100e6;  // seconds, bytes a second
  const double touched = static_cast<double>(memory_.bytes_to_ready(process_.pid())) / kSlowest;
  return prepare_within(kWall + touched, kProcessor + touched);
}

Outcome WorkerProcess::prepare_within(double wall_s, double processor_s) {
  const double before = process_.cpu_seconds();
  Outcome outcome = request(Command::prepare, wall_s, nullptr);
  if (outcome.verdict == Verdict::time_limit || outcome.verdict == Verdict::idle_limit) {
    const Diagnosis kept = violation<Violation::case_not_readied>(outcome.detail);
    outcome.verdict = kept.verdict;
    outcome.detail = kept.detail;
    return outcome;
  }
  if (outcome.verdict != Verdict::ok) return outcome;
  if (const double spent = process_.cpu_seconds() - before; spent > processor_s) {
    return ended(violation<Violation::busy_while_readied>(spent));
  }
  return outcome;
}

Outcome WorkerProcess::run(int phase, const CaseSpec& spec, BoundedServer* server) {
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
                                           BoundedServer* server, int phase,
                                           std::uint64_t instruction_limit) {
  if (device_ == nullptr) return request(command, time_limit_s, server);
  if (!device_->start(phase, instruction_limit)) {
    // No submission was loaded yet, so this cannot be its fault.
    if (command == Command::load) throw TransientFault(device_->how_it_ended());
    return device_died();
  }
  const double before = device_->busy_seconds();
  Outcome outcome = request(command, time_limit_s, server);
  outcome.device_seconds = device_->busy_seconds() - before;
  take_report(outcome);
  return outcome;
}

// The device's report counts however the request ended, unless the device died.
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
  if (outcome.verdict == Verdict::ok) outcome.detail = text_.note();
  return outcome;
}

Outcome WorkerProcess::request(Command command, double time_limit_s, BoundedServer* server) {
  if (!alive_) throw Error("a request to a worker that has ended");
  if (line_.take(1) != 0) return ended(violation<Violation::unasked_reply>());
  header().command = command;
  const std::uint64_t written_before = output_.written();
  Spent spent{.before = scheduling()};
  for (;;) {
    if (auto end = step(time_limit_s, spent)) return *std::move(end);
    if (control().reply != Reply::callback) break;
    if (command != Command::run || server == nullptr || layout_.callback_response_offset == 0)
      return ended(violation<Violation::unexpected_callback>());
    answer(server);
    if (server->given_up()) return ended(*server->given_up());
  }
  memory_.count_written(output_.written() - written_before);
  if (!text_.take()) return ended(too_much_text());
  const double processor = process_.cpu_seconds() - spent.before.processor;
  if (const auto greedy = too_many_cores(processor, spent.wall, settings_.threads))
    return ended(*greedy);
  Outcome outcome;
  outcome.seconds = spent.called;
  take_results(outcome);
  return outcome;
}

std::optional<Outcome> WorkerProcess::step(double time_limit_s, Spent& spent) {
  ++header().request;
  const auto t0 = Clock::now();
  if (!line_.send()) return ended(violation<Violation::unread_requests>());
  process_.resume();
  const double device_before = device_seconds();
  if (auto end = await_reply(time_limit_s, spent)) return end;
  const auto t1 = Clock::now();
  switch (process_.stop()) {
    case sandbox::Process::Stop::stopped: break;
    case sandbox::Process::Stop::ended: return died();
    case sandbox::Process::Stop::refused: return ended(violation<Violation::no_stop>());
  }
  const auto t2 = Clock::now();
  if (process_.first_thread_ended())
    return ended({Verdict::runtime_error, "its first thread, which makes the calls, ended"});
  // A reply may be forged, and the submission runs on until the stop. A long stop is charged, so
  // nothing is gained by that.
  const double called = std::max(0.0, seconds_between(t0, t1) - (device_seconds() - device_before));
  const double stopping = seconds_between(t1, t2);
  spent.called += called + (stopping > 0.01 * called + 50e-6 ? stopping : 0);
  spent.wall += seconds_between(t0, t2);
  if (line_.take(2) != 1) return ended(violation<Violation::several_replies>());
  // A forged reply may have stopped the worker before it gave its own, which is then still to come.
  if (control().answered != header().request) return ended(violation<Violation::early_reply>());
  return std::nullopt;
}

void WorkerProcess::take_results(Outcome& outcome) const {
  outcome.status = control().status;
  outcome.scratch_peak = control().scratch_peak;
  outcome.allocations = control().allocations;
  outcome.kept_blocks = control().kept_blocks;
  outcome.overrun = describe_overrun(control().overrun_side, control().overrun_bytes);
}

// Waits for a reply. Returns an outcome if the worker died or had to be killed. `spent`: what the
// request took up to the latest callback.
std::optional<Outcome> WorkerProcess::await_reply(double time_limit_s, const Spent& spent) {
  const auto start = Clock::now();
  const double device_before = device_seconds();
  double given_back = 0;
  for (;;) {
    pollfd entries[] = {{line_.ours(), POLLIN, 0},
                        {process_.pidfd(), POLLIN, 0},
                        {text_.ours(), POLLIN, 0},
                        {device_ == nullptr ? -1 : device_->pidfd(), POLLIN, 0},
                        {memory_.watch_fd(), POLLIN, 0}};
    const double device_spent = device_seconds() - device_before;
    if (device_spent > kSimulationLimit) {
      return ended({Verdict::time_limit,
                    fmt::format("its kernels took more than {:.0f} s", kSimulationLimit)});
    }
    const auto deadline =
        start + nanoseconds(time_limit_s - spent.called + device_spent + given_back);
    const auto left = std::max<std::chrono::nanoseconds>(deadline - Clock::now(), {});
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    const int ready = ::ppoll(entries, std::size(entries), &timeout, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    if (entries[0].revents != 0) return std::nullopt;
    if (entries[1].revents != 0) return died();
    if (entries[3].revents != 0) return device_died();
    // By the clock: threads whose calls are watched can see to it that something is always ready.
    if (Clock::now() >= deadline && device_seconds() - device_before <= device_spent) {
      const double wall = spent.wall + seconds_between(start, Clock::now());
      const double lost = std::min(lost_seconds(spent.before, scheduling(), wall, cores_),
                                   kMostGivenBack * time_limit_s);
      if (lost < given_back + kLeastGivenBack * time_limit_s)
        return timed_out(time_limit_s, given_back);
      given_back = lost;
    }
    if (entries[4].revents != 0) memory_.serve_watch();
    if (entries[2].revents != 0 && !text_.take()) return ended(too_much_text());
  }
}

// Serves one callback while the worker is stopped. Writes the bulk of the answer into the worker's
// memory, wherever it asked for it, since that can harm only the worker. If the kernel or the
// address forbids that, the worker copies the data itself, and faults itself.
//
// What goes to the device stays out of the arena, which the host's code can read: what it knows
// counts as a copy to the host.
void WorkerProcess::answer(BoundedServer* server) {
  const std::size_t request_bytes =
      std::min<std::size_t>(control().callback_request_bytes, kCallbackPayload);
  const std::size_t response_bytes =
      std::min<std::size_t>(control().callback_response_bytes, kCallbackPayload);
  const std::size_t bulk_bytes =
      std::min<std::size_t>(control().callback_bulk_bytes, kCallbackPayload - response_bytes);
  const std::uint64_t address = control().callback_bulk_address;
  const bool to_device = device_ != nullptr && sim::kGlobalRange.contains(address);
  std::byte* const in_arena = input_.data() + layout_.callback_response_offset;
  if (to_device) answer_.resize(response_bytes + bulk_bytes);
  std::byte* const response = to_device ? answer_.data() : in_arena;
  header().callback_status = server->serve(
      control().callback_kind, {output_.data() + layout_.callback_request_offset, request_bytes},
      {response, response_bytes + bulk_bytes});
  if (to_device) std::copy_n(response, response_bytes, in_arena);
  Written written = Written::to_no_memory;
  if (to_device && bulk_bytes > 0) {
    if (device_->write(address, {response + response_bytes, bulk_bytes})) written = Written::all;
  } else if (bulk_bytes > 0) {
    written = write_into(process_.pid(), address, response + response_bytes, bulk_bytes);
  }
  header().callback_bulk_written = written == Written::all ? 1 : 0;
  // Counts only requests that the server accepted; the sizes of others are mere claims. Bulk counts
  // as the harness's memory only where the kernel makes the worker take it from the arena: an answer
  // that passes no usable address finds it there too, and is charged as for a buffer of its own.
  if (header().callback_status == ASSAY_OK) {
    const std::size_t asked = layout_.callback_request_offset;
    const std::size_t answered = layout_.callback_response_offset;
    memory_.count_callback(
        {asked, asked + request_bytes},
        {answered, answered + response_bytes + (written == Written::forbidden ? bulk_bytes : 0)});
  }
  if (device_ != nullptr) device_->answered_on_host(response_bytes + (to_device ? 0 : bulk_bytes));
}

Outcome WorkerProcess::timed_out(double time_limit_s, double given_back) {
  process_.kill();
  const double processor = process_.wait({}).value_or(sandbox::Exit{}).cpu_seconds();
  Outcome outcome = ended(diagnose_silence(time_limit_s, given_back, processor));
  outcome.seconds = time_limit_s;
  return outcome;
}

// Handles a process that ended by itself.
Outcome WorkerProcess::died() {
  text_.take();
  const auto exit = process_.wait(std::chrono::seconds(5));
  if (!exit) throw Error("a worker neither runs nor ends");
  const bool killed = WIFSIGNALED(exit->status) && WTERMSIG(exit->status) == SIGKILL;
  return ended(
      diagnose_end({.status = exit->status,
                    .most_resident = static_cast<std::uint64_t>(exit->usage.ru_maxrss) * 1024,
                    .arenas = input_.bytes() + output_.bytes(),
                    .memory_limit = static_cast<std::uint64_t>(settings_.spec->limits.memory_bytes),
                    .out_of_memory = killed && memory_.ran_out(),
                    .output = text_.kept()}));
}

// Only this worker and the harness use the device, so whatever killed it came over the link or was
// a kernel.
Outcome WorkerProcess::device_died() {
  device_lost_ = true;
  const std::string how = device_->how_it_ended();
  if (device_->gpu_failed()) throw TransientFault(how);
  return ended({device_->out_of_time() ? Verdict::time_limit : Verdict::runtime_error, how});
}

Outcome WorkerProcess::ended(Diagnosis diagnosis) {
  const bool killed = process_.kill();
  alive_ = false;
  if (!killed) throw Error("a worker was killed and does not end: the kernel holds it");
  Outcome outcome;
  outcome.verdict = diagnosis.verdict;
  outcome.detail = std::move(diagnosis.detail) + text_.note();
  return outcome;
}

}  // namespace assay::processes
