#include "cli/sim_process.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "assay/error.h"
#include "cli/context.h"
#include "sim/address_map.h"
#include "sim/runtime/local_device.h"
#include "sim/runtime/runtime.h"
#include "util/fd.h"
#include "util/stop.h"

namespace assay::cli {
namespace {

using Main = int (*)(int, char**, char**);

// The child's log, for its exit handler.
sim::RunLog* g_log = nullptr;

void note_lost_output() {
  const std::size_t bytes = sim::cuda::Runtime::instance().pending_output();
  if (bytes == 0) return;
  g_log->note(
      fmt::format("{} bytes of kernel printf were lost, as on a GPU, since nothing waited for the "
                  "device before the "
                  "program ended: call cudaDeviceSynchronize",
                  bytes));
}

// Async-signal-safe output.
void say(const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

void on_segmentation_fault(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (sim::kGlobalRange.contains(address)) {
    char digits[19] = "0x0000000000000000";
    for (int i = 17, shift = 0; i > 1; --i, shift += 4)
      digits[i] = "0123456789abcdef"[address >> shift & 15];
    say("assay: host code accessed device memory at ");
    say(digits);
    say(": copy it with cudaMemcpy first\n");
  }
  ::signal(SIGSEGV, SIG_DFL);  // returning repeats the access, which kills the process
}

void catch_segmentation_faults() {
  static char stack[64 << 10];
  const stack_t alternative{stack, 0, sizeof stack};
  ::sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_segmentation_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
}

// Says what is missing, and what to do, for dlerror's text "...: undefined symbol: cublasCreate_v2".
std::string why_not_loaded(const std::string& error) {
  constexpr std::string_view kUndefined = "undefined symbol: ";
  const std::size_t at = error.find(kUndefined);
  if (at == std::string::npos) return "the compiled program cannot be loaded: " + error;
  const std::string name = error.substr(at + kUndefined.size());
  // CUDA's libraries are called cuNAME, and so are their functions.
  if (name.starts_with("cu") || name.starts_with("nccl") || name.starts_with("nvrtc")) {
    return fmt::format(
        "the program needs {}, which the simulator does not have: libraries with kernels of their "
        "own (cuBLAS, cuDNN, NCCL) and the driver API cannot be simulated",
        name);
  }
  return fmt::format(
      "the program needs {}, which none of its files defines: give the file that does, or the "
      "library, as with --nvcc-flag=-lNAME (for OpenMP --nvcc-flag=-Xcompiler=-fopenmp)",
      name);
}

Main load_main(const CudaLibraries& libraries, sim::RunLog& log) {
  const bool has_modules =
      libraries.modules.empty() || ::dlopen(libraries.modules.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* handle = has_modules ? ::dlopen(libraries.program.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (handle == nullptr) {
    log.not_loaded(why_not_loaded(::dlerror()));
    return nullptr;
  }
  auto* found = reinterpret_cast<Main>(::dlsym(handle, "main"));
  if (found == nullptr) {
    log.not_loaded(
        "the program has no main: give the file that has it too, or write a host program that "
        "launches the kernels");
  }
  return found;
}

// Undoes assay's own process settings.
void prepare_child(const SimulatedProgram& program) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_DUMPABLE, 1);  // debuggers may attach
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  restore_stop_signals();
  if (program.stdout_to_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  catch_segmentation_faults();
}

// noexcept, so that an exception ends the program here, not in the caller.
[[noreturn]] void child(const SimulatedProgram& program, int log_fd) noexcept {
  prepare_child(program);
  static sim::RunLog log(log_fd);
  g_log = &log;
  try {
    sim::cuda::Runtime::instance().attach(std::make_unique<sim::LocalDevice>(program.device, log),
                                          log);
  } catch (const std::exception& e) {
    log.not_loaded(fmt::format("the simulated device cannot be set up: {}", e.what()));
    ::_exit(kUsageOrHarnessError);
  }
  std::atexit(note_lost_output);  // registered before the program's handlers, so it runs after them
  const Main main = load_main(program.libraries, log);
  if (main == nullptr) ::_exit(kUsageOrHarnessError);
  std::vector<char*> argv;
  for (const std::string& word : program.arguments) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::exit(main(static_cast<int>(program.arguments.size()), argv.data(), environ));
}

std::string contents_of(int fd) {
  const auto size = static_cast<std::size_t>(::lseek(fd, 0, SEEK_END));
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(fd, bytes.data() + done, size - done, static_cast<off_t>(done));
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

// The child's exit status from waitpid. Passes the first stop request on to the child.
int wait_for(pid_t pid) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd entries[] = {{process.get(), POLLIN, 0}, {stop_fd(), POLLIN, 0}};
  while (process && entries[0].revents == 0) {
    if (::poll(entries, 2, -1) < 0 && errno != EINTR) break;
    if (entries[1].fd < 0 || stop_signal() == 0) continue;
    ::kill(pid, stop_signal());
    entries[1].fd = -1;
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

SimulatedRun run_simulated(const SimulatedProgram& program) {
  const Fd log(::memfd_create("assay-sim-log", MFD_CLOEXEC));
  if (!log) throw Error(fmt::format("cannot make a memory file: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) throw Error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid == 0) child(program, log.get());

  // Ctrl-C goes to the program; the report on its work until then still appears. The same holds for
  // other stop requests, which are passed on.
  const auto interrupt = ::signal(SIGINT, SIG_IGN), quit = ::signal(SIGQUIT, SIG_IGN);
  SimulatedRun run;
  run.status = wait_for(pid);
  ::signal(SIGINT, interrupt);
  ::signal(SIGQUIT, quit);
  run.summary = sim::summarise(contents_of(log.get()));
  return run;
}

}  // namespace assay::cli
