#include "run/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sandbox/probe.h"
#include "sandbox/worker_image.h"
#include "sim/address_map.h"
#include "sim/runtime/run_log.h"
#include "util/files.h"
#include "util/text.h"

namespace assay::run {
namespace {

using Clock = std::chrono::steady_clock;
using wire::Command, wire::Reply;

constexpr std::size_t kTextLimit = 64 << 10;
constexpr double kControlTimeLimit = 30;  // of ping and prepare
constexpr double kSimulationLimit =
    300;  // of the device in one call, beside the limit on instructions

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::max(seconds, 0.0) * 1e9));
}

Fd make_eventfd() {
  Fd fd(::eventfd(0, EFD_CLOEXEC));
  if (!fd) throw Error("cannot make an eventfd");
  return fd;
}

// Counts waiting on a non-blocking read of an eventfd, without blocking.
std::uint64_t take_count(int fd) {
  pollfd entry{fd, POLLIN, 0};
  std::uint64_t count = 0;
  if (::poll(&entry, 1, 0) == 1 && ::read(fd, &count, sizeof count) == sizeof count) return count;
  return 0;
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

// The function of the CUDA runtime that a submission asks for and the simulator does not know, from dlopen's message.
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
std::string refused_functions(int log) {
  constexpr std::size_t kMostBytes = 64 << 10;
  std::string bytes;
  char chunk[4096];
  ssize_t n;
  while (bytes.size() < kMostBytes && (n = ::read(log, chunk, sizeof chunk)) > 0) {
    bytes.append(chunk, static_cast<std::size_t>(n));
  }
  const std::vector<std::string> names = sim::summarise(bytes).unsupported;
  return names.empty() ? "" : printable(names.front(), 1);
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerSettings& settings, Arena& input, std::size_t output_bytes,
                             Arena* device)
    : settings_(settings),
      input_(input),
      output_("output", output_bytes, Arena::Access::worker_writes),
      control_("control", sizeof(wire::Control), Arena::Access::worker_writes),
      request_(make_eventfd()),
      reply_(make_eventfd()) {
  const ChallengeSpec& spec = *settings_.spec;
  header() = wire::Header{};
  header().scratch_capacity = static_cast<std::uint64_t>(spec.limits.memory_bytes);
  header().nthreads = settings_.threads;

  Pipe text = make_pipe();
  // Our end only. Who prints too much shall wait until that is found out, instead of losing the rest.
  if (::fcntl(text.read.get(), F_SETFL, O_NONBLOCK) != 0) throw Error("cannot set up a pipe");
  text_ = std::move(text.read);
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));

  sandbox::Program program;
  program.policy = sandbox::Policy::worker;
  program.mounts = sandbox::library_mounts();
  const sandbox::Mount library{settings_.library.string(), "/submission.so", false};
  program.mounts.push_back(library);
  program.exec_fd = image_of(settings_, device != nullptr);
  program.argv = {"worker", sandbox::visible(settings_.tier, library)};
  // In descriptor order 0..7; see wire.h.
  program.fds = {null.get(),  text.write.get(), text.write.get(), control_.fd(),
                 input_.fd(), output_.fd(),     request_.get(),   reply_.get()};
  Pipe log;
  if (device != nullptr) {
    device_ = std::make_unique<DeviceProcess>(settings_.tier, *settings_.device, *device);
    log = make_pipe(O_NONBLOCK);
    log_ = std::move(log.read);
    program.fds.insert(program.fds.end(), {device_->link_fd(), device_->call_fd(),
                                           device_->answer_fd(), log.write.get()});
  }
  constexpr std::uint64_t kRuntime = 512u << 20;  // libraries, stacks
  program.limits.address_space = input_.bytes() + output_.bytes() + kRuntime +
                                 2 * static_cast<std::uint64_t>(spec.limits.memory_bytes);
  program.limits.cpu_seconds = static_cast<std::uint64_t>(settings_.cpu_limit_s);
  program.limits.processes = static_cast<std::uint64_t>(settings_.threads) + 8;
  process_ = sandbox::spawn(settings_.tier, program);
  process_.stop();
}

Outcome WorkerProcess::load() {
  const ChallengeSpec& spec = *settings_.spec;
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

Outcome WorkerProcess::ping() { return request(Command::ping, kControlTimeLimit, nullptr); }

Outcome WorkerProcess::prepare() { return request(Command::prepare, kControlTimeLimit, nullptr); }

Outcome WorkerProcess::run(int phase, const CaseSpec& spec, CallbackServer* server) {
  header().phase = phase;
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
    if (command == Command::load) throw Error(device_->how_it_ended());
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
  if (const std::string refused = refused_functions(log_.get()); !refused.empty()) {
    outcome.device->unsupported = refused;
  }
}

Outcome WorkerProcess::self_test(double time_limit_s) {
  Outcome outcome = request(Command::self_test, time_limit_s, nullptr);
  if (outcome.verdict == Verdict::ok) outcome.detail = text_note();
  return outcome;
}

Outcome WorkerProcess::request(Command command, double time_limit_s, CallbackServer* server) {
  if (!alive_) throw Error("a request to a worker that has ended");
  if (take_count(reply_.get()) != 0) {
    return ended(Verdict::protocol_violation, "answered before it was asked");
  }
  header().command = command;
  Outcome outcome;
  for (;;) {
    const std::uint64_t one = 1;
    ++header().request;
    const auto t0 = Clock::now();
    if (::write(request_.get(), &one, sizeof one) != sizeof one)
      throw Error("cannot reach a worker");
    process_.resume();
    const double device_before = device_seconds();
    if (auto failure = await_reply(time_limit_s - outcome.seconds)) return *failure;
    const auto t1 = Clock::now();
    if (!process_.stop()) return died();
    const auto t2 = Clock::now();
    // A reply may be forged; what happens until the stop is then still running. A long stop is
    // charged, so nothing is gained by it.
    const double called =
        std::max(0.0, seconds_between(t0, t1) - (device_seconds() - device_before));
    const double stopping = seconds_between(t1, t2);
    outcome.seconds += called + (stopping > 0.01 * called + 50e-6 ? stopping : 0);
    if (take_count(reply_.get()) != 1) {
      return ended(Verdict::protocol_violation, "forged a reply: answered more than once");
    }
    // A forged reply may have stopped the worker before it gave its own: then that is still to come.
    if (control().answered != header().request) {
      return ended(Verdict::protocol_violation, "forged a reply: the call had not ended");
    }
    if (control().reply != Reply::callback) break;
    if (command != Command::run || server == nullptr || layout_.callback_response_offset == 0) {
      return ended(Verdict::protocol_violation, "called back although the case has no callbacks");
    }
    answer(server);
  }
  if (drain_text()) return ended(Verdict::output_limit, "more than 64 KiB on stdout and stderr");
  outcome.status = control().status;
  outcome.scratch_peak = control().scratch_peak;
  return outcome;
}

// Waits until the reply eventfd is readable; an outcome when the worker ended or must end instead.
std::optional<Outcome> WorkerProcess::await_reply(double time_limit_s) {
  const auto start = Clock::now();
  const double device_before = device_seconds();
  for (;;) {
    pollfd entries[] = {{reply_.get(), POLLIN, 0},
                        {process_.pidfd(), POLLIN, 0},
                        {text_.get(), POLLIN, 0},
                        {device_ == nullptr ? -1 : device_->pidfd(), POLLIN, 0}};
    const double device_spent = device_seconds() - device_before;
    if (device_spent > kSimulationLimit) {
      return ended(
          Verdict::time_limit,
          fmt::format("its kernels took more than {:.0f} s to simulate", kSimulationLimit));
    }
    const auto deadline = start + nanoseconds(time_limit_s + device_spent);
    const auto left = std::max<std::chrono::nanoseconds>(deadline - Clock::now(), {});
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    const int ready = ::ppoll(entries, device_ == nullptr ? 3 : 4, &timeout, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    if (entries[0].revents != 0) return std::nullopt;
    if (entries[1].revents != 0) return died();
    if (entries[3].revents != 0) return device_died();
    if (ready == 0 && device_seconds() - device_before <= device_spent)
      return timed_out(time_limit_s);
    if (entries[2].revents != 0 && drain_text()) {
      return ended(Verdict::output_limit, "more than 64 KiB on stdout and stderr");
    }
  }
}

// Serves one callback while the worker is stopped. The bulk of the answer is written into the worker's
// memory, wherever it asked for it: that can harm nothing but the worker. Where the kernel or the
// address forbids it the worker copies, and faults, itself.
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
  if (device_ != nullptr) device_->answered_on_host(response_bytes + (to_device ? 0 : bulk_bytes));
}

Outcome WorkerProcess::timed_out(double time_limit_s) {
  process_.kill();
  const double cpu = process_.wait({}).value_or(sandbox::Exit{}).cpu_seconds();
  Outcome outcome = ended(
      cpu < 0.3 * time_limit_s ? Verdict::idle_limit : Verdict::time_limit,
      fmt::format("no reply within {:.3g} s ({:.2f} s of processor time used)", time_limit_s, cpu));
  outcome.seconds = time_limit_s;
  return outcome;
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

// The device serves nobody but this worker and the harness, so what ends it came over the link or was a kernel.
Outcome WorkerProcess::device_died() {
  return ended(Verdict::runtime_error, device_->how_it_ended());
}

Outcome WorkerProcess::ended(Verdict verdict, std::string detail) {
  process_.kill();
  alive_ = false;
  Outcome outcome;
  outcome.verdict = verdict;
  outcome.detail = std::move(detail) + text_note();
  return outcome;
}

// Reads what the submission printed; true when it is over the limit.
bool WorkerProcess::drain_text() {
  char chunk[4096];
  ssize_t n;
  while ((n = ::read(text_.get(), chunk, sizeof chunk)) > 0) {
    captured_.append(chunk, static_cast<std::size_t>(n));
    if (captured_.size() > kTextLimit) return true;
  }
  return false;
}

// The last lines of its output, for messages.
std::string WorkerProcess::text_note() const {
  if (captured_.empty()) return {};
  constexpr std::size_t kTail = 300;
  const std::size_t begin = captured_.size() > kTail ? captured_.size() - kTail : 0;
  return "; its output ends: " + printable(std::string_view(captured_).substr(begin), 3);
}

namespace {

// A field such as "VmHWM:" of /proc/<pid>/status in bytes.
std::uint64_t status_field(pid_t pid, std::string_view field) {
  std::ifstream in(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(field))
      return std::strtoull(line.c_str() + field.size(), nullptr, 10) * 1024;
  }
  return 0;
}

}  // namespace

std::uint64_t WorkerProcess::resident_bytes() const {
  return status_field(process_.pid(), "VmRSS:");
}

std::uint64_t WorkerProcess::peak_bytes() const { return status_field(process_.pid(), "VmHWM:"); }

std::uint64_t WorkerProcess::uncounted_growth() const {
  constexpr std::uint64_t kAny = 1 << 20, kRuntime = 4 << 20;
  if (device_ == nullptr) return kAny;
  std::error_code ec;
  const std::uintmax_t library = std::filesystem::file_size(settings_.library, ec);
  return kAny + kRuntime + (ec ? 0 : 2 * library);
}

void WorkerProcess::reset_peak() const {
  std::ofstream(fmt::format("/proc/{}/clear_refs", process_.pid())) << "5";
}

}  // namespace assay::run
