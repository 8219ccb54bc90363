#include "build/builder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "build/tool.h"
#include "sandbox/probe.h"
#include "util/fd.h"
#include "util/files.h"
#include "util/sha256.h"
#include "util/text.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

// -march=native: kernels are graded on the machine they run on. No -ffast-math: it would change the
// floating-point mode of the whole process and the meaning of NaN.
const std::vector<std::string> kFlags{"-std=c++20",
                                      "-march=native",
                                      "-fPIC",
                                      "-shared",
                                      "-pthread",
                                      "-fopenmp",
                                      "-fdiagnostics-color=never",
                                      "-fmax-errors=20",
                                      "-Wl,-z,defs,-z,now,-z,noexecstack"};

constexpr char kProduct[] = "submission.so";  // the library or object, in its folder
constexpr std::size_t kLogLimit = 1 << 20;    // captured; the rest is thrown away
constexpr std::size_t kLibraryLimit = 128u << 20;

// A folder that is removed at the end.
struct TemporaryFolder {
  explicit TemporaryFolder(const fs::path& parent) {
    static std::atomic<unsigned> next{0};
    path = parent / fmt::format("build-{}-{}", ::getpid(), next++);
    fs::create_directories(path);
  }
  ~TemporaryFolder() {
    std::error_code ec;
    fs::remove_all(path, ec);
  }
  fs::path path;
};

void write_source(const fs::path& folder, const SourceFile& file) {
  const fs::path path = folder / file.name;
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << file.contents;
  out.close();
  if (!out) throw Error(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

bool is_translation_unit(const std::string& name, Language language) {
  if (language == Language::cuda) return name.ends_with(".cu");
  return name.ends_with(".cpp") || name.ends_with(".cc");
}

struct CompilerRun {
  std::string log;
  bool timed_out = false;
  sandbox::Exit exit;
};

// Collects the compiler's output until it ends or its time is up.
CompilerRun watch(sandbox::Process& process, int log_fd, double time_limit_s) {
  CompilerRun run;
  const auto deadline = Clock::now() + std::chrono::duration<double>(time_limit_s);
  const auto drain = [&] {
    char chunk[8192];
    ssize_t n;
    while ((n = ::read(log_fd, chunk, sizeof chunk)) > 0) {
      const std::size_t room = kLogLimit - std::min(kLogLimit, run.log.size());
      run.log.append(chunk, std::min(room, static_cast<std::size_t>(n)));
    }
  };
  for (;;) {
    const double left = std::chrono::duration<double>(deadline - Clock::now()).count();
    if (left <= 0) {
      run.timed_out = true;
      process.kill();
    }
    pollfd entries[] = {{log_fd, POLLIN, 0}, {process.pidfd(), POLLIN, 0}};
    if (!run.timed_out) ::poll(entries, 2, static_cast<int>(std::min(left, 1.0) * 1000) + 1);
    drain();
    if (const auto exit = process.wait({})) {
      drain();
      run.exit = *exit;
      return run;
    }
  }
}

// Copies a file that the sandbox wrote, without following links.
bool fetch(const fs::path& from, const fs::path& to) {
  const Fd in(::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!in || ::fstat(in.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<std::size_t>(info.st_size) > kLibraryLimit) {
    return false;
  }
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pread(in.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  write_file_atomically(to, bytes);
  return true;
}

// What -march=native depends on.
std::string cpu_identity() {
  std::ifstream in("/proc/cpuinfo");
  std::string identity;
  for (std::string line; std::getline(in, line) && !line.empty();) {
    if (line.starts_with("model name") || line.starts_with("flags") ||
        line.starts_with("Features")) {
      identity += line + "\n";
    }
  }
  return identity;
}

}  // namespace

std::string find_compiler() {
  if (const char* chosen = std::getenv("ASSAY_CXX")) {
    if (::access(chosen, X_OK) == 0) return fs::canonical(chosen);
    throw Error(fmt::format("ASSAY_CXX names {}, which cannot be executed", chosen));
  }
  // The build sandbox shows only /usr.
  const auto found = find_in_path("g++", [](const fs::path& path) {
    return fs::canonical(path).string().starts_with("/usr/");
  });
  if (!found)
    throw Error("no g++ below /usr in PATH: install it (apt-get install g++) or set ASSAY_CXX");
  return fs::canonical(*found);
}

Builder::Builder(sandbox::Tier tier, fs::path root, fs::path cache)
    : tier_(tier),
      root_(std::move(root)),
      cache_(fs::absolute(cache)),
      compiler_(find_compiler()),
      version_(first_line_of(compiler_ + " --version 2>/dev/null")),
      cpu_(cpu_identity()),
      toolkit_(find_cuda_toolkit()) {
  require_writable_directory(cache_);
  for (const char* name : {"assay/abi.h", "assay/attention.h"}) {
    public_headers_.push_back({name, read_file(root_ / "include" / name)});
  }
}

namespace {

std::vector<std::string> flags_of(const BuildRequest& request, const std::string& architecture) {
  if (request.language == Language::cuda) return cuda_flags(architecture);
  std::vector<std::string> flags = kFlags;
  flags.insert(flags.begin() + 1, request.for_speed ? "-O3" : "-O1");
  return flags;
}

}  // namespace

fs::path Builder::library_path(const BuildRequest& request, const std::string& architecture) const {
  std::string text =
      version_ + "\n" + (request.language == Language::cuda ? toolkit_->version : cpu_);
  for (const auto& flag : flags_of(request, architecture)) text += flag + "\n";
  for (const auto* files : {&request.sources, &request.headers, &public_headers_}) {
    for (const SourceFile& file : *files) {
      text += fmt::format("{} {}\n", file.name, file.contents.size()) + file.contents;
    }
  }
  // An object's name is a hash of all it was made from.
  for (const fs::path& object : request.objects) text += object.filename().string() + "\n";
  return cache_ / (sha256_hex(text) + (request.object ? ".o" : ".so"));
}

BuildResult Builder::build(const BuildRequest& request) {
  BuildResult result;
  std::vector<std::string> architectures{""};
  if (request.language == Language::cuda) {
    if (!toolkit_) {
      result.record.verdict = Verdict::skipped;
      result.record.log = kNoToolkit;
      return result;
    }
    architectures.assign(std::begin(kCudaArchitectures), std::end(kCudaArchitectures));
  }
  for (const std::string& architecture : architectures) {
    const fs::path library = library_path(request, architecture);
    if (!fs::exists(library)) continue;
    result.library = library;
    result.record.cached = true;
    result.record.command =
        fmt::format("{}", fmt::join(arguments(request, architecture, "/src", "/abi", "/out"), " "));
    return result;
  }
  for (const std::string& architecture : architectures) {
    result = compile(request, architecture);
    if (result.record.verdict != Verdict::build_error || !lacks_features(result.record.log)) break;
  }
  return result;
}

std::vector<std::string> Builder::arguments(const BuildRequest& request,
                                            const std::string& architecture,
                                            const std::string& source, const std::string& abi,
                                            const std::string& out) const {
  const bool cuda = request.language == Language::cuda;
  std::vector<std::string> argv{cuda ? toolkit_->nvcc.string() : compiler_};
  const std::vector<std::string> flags = flags_of(request, architecture);
  argv.insert(argv.end(), flags.begin(), flags.end());
  if (cuda) argv.insert(argv.end(), {"-ccbin", compiler_});
  if (request.object) argv.push_back("-c");
  if (!request.objects.empty()) argv.push_back("-s");
  argv.insert(argv.end(), {"-I" + abi, "-o", out + "/" + kProduct});
  for (const SourceFile& file : request.sources) {
    if (is_translation_unit(file.name, request.language)) argv.push_back(source + "/" + file.name);
  }
  for (const fs::path& object : request.objects) {
    argv.push_back(source + "/" + object.filename().string());
  }
  return argv;
}

// The compiler without its command line: what it may see and use.
sandbox::Program Builder::compiler_program(const BuildRequest& request) const {
  const bool cuda = request.language == Language::cuda;
  sandbox::Program program;
  program.policy = sandbox::Policy::compiler;
  program.mounts = sandbox::library_mounts();
  for (const char* tool : {"/usr/bin", "/usr/include", "/usr/libexec"}) {
    if (fs::exists(tool)) program.mounts.push_back({tool, tool, false});
  }
  program.limits.cpu_seconds = static_cast<std::uint64_t>(request.time_limit_s) + 1;
  program.limits.address_space = 4ull << 30;
  program.limits.file_size = 256u << 20;
  program.limits.processes = 64;
  program.limits.open_files = 256;
  program.exec_path = compiler_;
  program.env = {"PATH=/usr/bin", "LC_ALL=C"};
  if (!cuda) return program;
  program.exec_path = toolkit_->nvcc;
  program.env.front() += ":" + toolkit_->nvcc.parent_path().string();
  program.mounts.push_back({"/bin", "/bin", false});  // nvcc starts its tools through /bin/sh
  const std::string root = toolkit_->root;
  const bool seen = std::ranges::any_of(program.mounts, [&](const sandbox::Mount& m) {
    return (root + "/").starts_with(m.inside + "/");
  });
  if (!seen) program.mounts.push_back({root, root, false});
  program.limits.address_space = 16ull << 30;
  return program;
}

BuildResult Builder::compile(const BuildRequest& request, const std::string& architecture) {
  const fs::path library = library_path(request, architecture);
  const TemporaryFolder folder(cache_);
  for (const char* part : {"src", "abi", "out"}) fs::create_directories(folder.path / part);
  for (const SourceFile& file : request.sources) write_source(folder.path / "src", file);
  for (const fs::path& object : request.objects) {
    write_source(folder.path / "src", {object.filename(), read_file(object)});
  }
  for (const SourceFile& file : request.headers) write_source(folder.path / "abi", file);
  for (const SourceFile& file : public_headers_) write_source(folder.path / "abi", file);

  const sandbox::Mount source{folder.path / "src", "/src", false};
  const sandbox::Mount abi{folder.path / "abi", "/abi", false};
  const sandbox::Mount out{folder.path / "out", "/out", true};
  sandbox::Program program = compiler_program(request);
  program.mounts.insert(program.mounts.end(), {source, abi, out});
  program.argv = arguments(request, architecture, visible(tier_, source), visible(tier_, abi),
                           visible(tier_, out));
  program.env.push_back("TMPDIR=" + visible(tier_, out));

  Pipe log = make_pipe(O_NONBLOCK);
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  program.fds = {null.get(), log.write.get(), log.write.get()};

  BuildResult result;
  result.record.command = fmt::format("{}", fmt::join(program.argv, " "));
  const auto start = Clock::now();
  sandbox::Process process = sandbox::spawn(tier_, program);
  log.write.reset();
  const CompilerRun run = watch(process, log.read.get(), request.time_limit_s);
  result.record.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const bool cuda = request.language == Language::cuda;
  result.record.log = printable(cuda ? without_linker_warnings(run.log) : run.log, 30);

  if (run.timed_out) {
    result.record.verdict = Verdict::build_limit;
    result.record.log =
        fmt::format("the compiler was ended after {:.0f} s\n", request.time_limit_s) +
        result.record.log;
  } else if (run.exit.status != 0) {
    // A compiler that dies of a limit reports itself killed, or an internal error after SIGXFSZ.
    const bool limit = WIFSIGNALED(run.exit.status) ||
                       run.log.find("out of memory") != std::string::npos ||
                       run.log.find("virtual memory exhausted") != std::string::npos ||
                       run.log.find("cannot allocate memory") != std::string::npos ||
                       run.log.find("File size limit exceeded") != std::string::npos ||
                       run.log.find("Killed signal terminated program") != std::string::npos ||
                       run.log.find("CPU time limit exceeded") != std::string::npos;
    result.record.verdict = limit ? Verdict::build_limit : Verdict::build_error;
  } else if (const std::string foreign = cuda ? foreign_symbols(run.log) : ""; !foreign.empty()) {
    result.record.verdict = Verdict::build_error;
    result.record.log = printable(foreign, 30);
  } else if (!fetch(folder.path / "out" / kProduct, library)) {
    result.record.verdict = Verdict::build_error;
    result.record.log = "the compiler left no usable file\n" + result.record.log;
  } else {
    result.library = library;
  }
  return result;
}

}  // namespace assay
