#include "cli/nvcc.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <set>
#include <string_view>

#include "assay/error.h"
#include "build/nvcc.h"
#include "build/tool.h"
#include "cli/output.h"
#include "util/fd.h"
#include "util/files.h"
#include "util/stop.h"

namespace assay::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kHowToGet =
    "install NVIDIA's CUDA Toolkit 13 (packages cuda-nvcc-13-0, cuda-cudart-dev-13-0 and "
    "cuda-cccl-13-0 "
    "of NVIDIA's repository are enough; no GPU or driver is needed) and put its bin/ into PATH or "
    "set "
    "CUDA_HOME";

// Whether the process of a pidfd has exited. Without pidfds returns true, and the caller's wait
// blocks instead.
bool ended(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return pidfd < 0 || ::poll(&entry, 1, 0) != 0;
}

struct Spawned {
  int status = 0;      // from waitpid
  std::string output;  // stdout and stderr
};

// Runs a command until it ends, or until assay is stopped, which kills it and all its children.
Spawned spawn(const std::vector<std::string>& command, const fs::path& temporary) {
  Pipe pipe = make_pipe();
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::string tmpdir = "TMPDIR=" + temporary.string();
  std::vector<char*> env{const_cast<char*>(tmpdir.c_str())};
  for (char** e = environ; *e != nullptr; ++e) {
    if (std::strncmp(*e, "TMPDIR=", 7) != 0) env.push_back(*e);
  }
  env.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe.write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, pipe.write.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;  // own process group, to be killed as one
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), env.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    throw Error(fmt::format("cannot start {}: {}", command[0], std::strerror(failed)));
  pipe.write.reset();

  Spawned result;
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  // Reads until the command closes its output.
  for (bool reading = true; reading || !ended(process.get());) {
    pollfd entries[] = {{reading ? pipe.read.get() : -1, POLLIN, 0},
                        {reading ? -1 : process.get(), POLLIN, 0},
                        {stop_fd(), POLLIN, 0}};
    if (::poll(entries, 3, -1) < 0 && errno != EINTR) break;
    if (stop_signal() != 0) {
      ::kill(-pid, SIGKILL);
      break;
    }
    char chunk[4096];
    if (entries[0].revents == 0) continue;
    const ssize_t n = ::read(pipe.read.get(), chunk, sizeof chunk);
    if (n > 0) result.output.append(chunk, static_cast<std::size_t>(n));
    reading = n > 0 || (n < 0 && errno == EINTR);
  }
  while (::waitpid(pid, &result.status, 0) < 0 && errno == EINTR) {
  }
  check_stop();
  return result;
}

std::string release_of(const fs::path& nvcc) {
  const Spawned version = spawn({nvcc.string(), "--version"}, fs::temp_directory_path());
  std::smatch match;
  static const std::regex release("release ([0-9]+\\.[0-9]+)");
  if (!std::regex_search(version.output, match, release)) {
    throw Error(
        fmt::format("{} --version names no release: is it NVIDIA's compiler?", nvcc.string()));
  }
  return match[1];
}

void check_source(const fs::path& source) {
  const std::string suffix = source.extension();
  if (suffix == ".ptx") {
    throw Error(
        fmt::format("{}: PTX has kernels but no host program to launch them; give the .cu file "
                    "that it was compiled from",
                    source.string()));
  }
  const std::vector<std::string> known{".cu", ".cpp", ".cc", ".cxx", ".c"};
  if (std::find(known.begin(), known.end(), suffix) == known.end()) {
    throw Error(fmt::format("{}: not a source file that nvcc compiles ({})", source.string(),
                            fmt::join(known, ", ")));
  }
  if (!fs::is_regular_file(source)) throw Error(fmt::format("{}: no such file", source.string()));
  if (::access(source.c_str(), R_OK) != 0) {
    throw Error(fmt::format("{}: {}", source.string(), std::strerror(errno)));
  }
}

std::string how_it_failed(int status) {
  if (WIFSIGNALED(status)) return fmt::format("ended by signal {}", WTERMSIG(status));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

// A module of relocatable device code calls such a function, which the device linker would make.
// The rest of its name is the module's.
constexpr std::string_view kRegistration = "__cudaRegisterLinkedBinary_";

// Those that are named anywhere in a shared object. One too many does no harm.
std::set<std::string> registrations(const std::string& object) {
  std::set<std::string> found;
  for (std::size_t at = object.find(kRegistration); at != std::string::npos;
       at = object.find(kRegistration, at + 1)) {
    const auto is_end = [](char c) {
      return c != '_' && std::isalnum(static_cast<unsigned char>(c)) == 0;
    };
    const auto from = object.begin() + static_cast<std::ptrdiff_t>(at);
    found.emplace(from, std::find_if(from, object.end(), is_end));
  }
  return found;
}

using Command = std::vector<std::string>;

Command operator+(Command a, const Command& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Runs nvcc, and prints what it says; false if that is nothing. Throws Error, with `what` could not
// be done, if it fails.
bool run_nvcc(const Command& command, const fs::path& temporary, const std::string& what) {
  const Spawned run = spawn(command, temporary);
  tell(run.output);
  if (run.status == 0) return !run.output.empty();
  const bool lacks = run.output.find("not supported on .target 'sm_90'") != std::string::npos;
  const char* const remedy = lacks ? "; --arch sm_90a has wgmma and what else sm_90 lacks" : "";
  throw Error(fmt::format("nvcc could not {} ({}): its messages are above{}; the command was\n  {}",
                          what, how_it_failed(run.status), remedy, fmt::join(command, " ")));
}

// Only PTX is embedded, uncompressed, and no runtime is linked: assay itself exports one, and links
// relocatable device code.
Command start_of(const Nvcc& nvcc) { return {nvcc.path.string(), "-cudart", "none"}; }

// The compiler that nvcc calls for the host's code, unless it is told otherwise.
std::string host_compiler() {
  const auto path = find_in_path("g++");
  return path ? fs::canonical(*path).string() : "";
}

// The command without its output, and what else decides about the result.
std::string identity_of(const Nvcc& nvcc, const Command& command) {
  std::string text = fmt::format("{}\n{}\n{}\n{}\n", nvcc.release, host_compiler(),
                                 fs::current_path().string(), fmt::join(command, "\n"));
  for (const char* name : {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CPATH",
                           "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"}) {
    if (const char* value = std::getenv(name)) text += fmt::format("{}={}\n", name, value);
  }
  return text;
}

// The standard and the level of optimisation, unless the user names others: nvcc warns of two.
Command defaults(const Command& flags) {
  const auto named = [&](std::string_view brief, std::string_view full) {
    return std::ranges::any_of(flags, [&](const std::string& flag) {
      return flag.starts_with(brief) || flag.starts_with(full);
    });
  };
  Command unnamed;
  if (!named("-std", "--std")) unnamed.emplace_back("-std=c++17");
  if (!named("-O", "--optimize")) unnamed.emplace_back("-O3");
  return unnamed;
}

fs::path compile_object(const Nvcc& nvcc, const CudaBuild& build, const fs::path& source,
                        const fs::path& object, ObjectCache& cache) {
  const std::string compute = "compute_" + build.architecture.substr(3);
  const Command command = start_of(nvcc) + defaults(build.flags) +
                          Command{"-lineinfo",
                                  "-arch=" + compute,
                                  "-code=" + compute,
                                  "--no-compress",
                                  "-Xcompiler",
                                  "-fPIC",
                                  "-c",
                                  "-MD",
                                  fs::absolute(source).string()} +
                          build.flags;
  const std::string identity = identity_of(nvcc, command);
  if (const auto kept = cache.find(identity)) return *kept;
  const auto begun = fs::file_time_type::clock::now();
  const bool warned = run_nvcc(command + Command{"-o", object.string()}, object.parent_path(),
                               "compile " + source.string());
  const fs::path rule = fs::path(object).replace_extension(".d");
  if (!warned && fs::exists(rule))
    cache.add(identity, object, prerequisites(read_file(rule)), begun);
  return object;
}

// Without -x, which would say what language the objects are in.
Command flags_for_linking(const Command& flags) {
  Command kept;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] == "-x" || flags[i] == "--x") {
      ++i;
    } else if (!flags[i].starts_with("-x=") && !flags[i].starts_with("--x=")) {
      kept.push_back(flags[i]);
    }
  }
  return kept;
}

// Returns whether nvcc printed a message.
bool link(const Nvcc& nvcc, const Command& inputs, const fs::path& library,
          const std::string& what) {
  return run_nvcc(
      start_of(nvcc) +
          Command{"--no-device-link", "-Xcompiler", "-fPIC", "-shared", "-o", library.string()} +
          inputs,
      library.parent_path(), what);
}

// Whether none of the flags can name a library or another file to link.
bool link_no_files(const Command& flags) {
  return std::ranges::all_of(flags, [](const std::string& flag) {
    return std::ranges::any_of(
        std::array{"-D", "-G", "-I", "-O", "-U", "-W", "-arch=", "-g", "-lineinfo",
                   "-rdc=", "-std=", "-use_fast_math", "--expt-", "--std=", "--use_fast_math"},
        [&](const char* harmless) { return flag.starts_with(harmless); });
  });
}

fs::path link_program(const Nvcc& nvcc, const CudaBuild& build,
                      const std::vector<fs::path>& objects, const fs::path& folder,
                      ObjectCache& cache) {
  const Command flags = flags_for_linking(build.flags);
  const std::string identity = identity_of(nvcc, start_of(nvcc) + flags);
  const bool keep = link_no_files(flags);
  if (keep) {
    if (const auto kept = cache.find_program(identity, objects)) return *kept;
  }
  Command inputs, sources;
  for (const fs::path& object : objects) inputs.push_back(object.string());
  for (const fs::path& source : build.sources) sources.push_back(source.string());
  fs::path program = folder / "program.so";
  const bool warned =
      link(nvcc, inputs + flags, program, fmt::format("link {}", fmt::join(sources, ", ")));
  if (keep && !warned) cache.add_program(identity, objects, program);
  return program;
}

fs::path link_registrations(const Nvcc& nvcc, const std::set<std::string>& functions,
                            const fs::path& folder) {
  std::string text = "void __cudaRegisterRelocatable(void (*)(void**), const void*);\n";
  for (const std::string& name : functions) {
    text += fmt::format(
        "void {}(void (*contents)(void**), const void* wrapper) {{\n"
        "  __cudaRegisterRelocatable(contents, wrapper);\n}}\n",
        name);
  }
  const fs::path source = folder / "modules.c";
  write_file_alone(source, text);
  fs::path library = folder / "modules.so";
  link(nvcc, {source.string()}, library, "link the program's modules");
  return library;
}

}  // namespace

Nvcc find_nvcc() {
  const auto path = nvcc_path();
  if (!path) {
    throw Error(
        fmt::format("no nvcc in PATH, $CUDA_HOME/bin or /usr/local/cuda/bin: {}", kHowToGet));
  }
  Nvcc nvcc{*path, release_of(*path)};
  if (nvcc.release.starts_with("13.")) return nvcc;
  throw Error(
      fmt::format("{} is of release {}; the simulator stands in for the runtime of CUDA 13: {}",
                  path->string(), nvcc.release, kHowToGet));
}

CudaLibraries compile(const Nvcc& nvcc, const CudaBuild& build, const fs::path& folder,
                      ObjectCache& cache) {
  for (const fs::path& source : build.sources) check_source(source);
  std::vector<fs::path> objects;
  for (const fs::path& source : build.sources) {
    const fs::path object = folder / fmt::format("{}.o", objects.size());
    objects.push_back(compile_object(nvcc, build, source, object, cache));
  }
  CudaLibraries built;
  built.program = link_program(nvcc, build, objects, folder, cache);
  const std::set<std::string> functions = registrations(read_file(built.program));
  if (!functions.empty()) built.modules = link_registrations(nvcc, functions, folder);
  return built;
}

}  // namespace assay::cli
