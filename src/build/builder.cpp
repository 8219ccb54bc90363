#include "build/builder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <span>

#include "assay/error.h"
#include "build/foreign_headers.h"
#include "build/target.h"
#include "build/tool.h"
#include "build/warnings.h"
#include "sandbox/probe.h"
#include "sandbox/worker_image.h"
#include "util/clock.h"
#include "util/demangle.h"
#include "util/fd.h"
#include "util/files.h"
#include "util/sha256.h"
#include "util/shell.h"
#include "util/text.h"
#include "util/transient_fault.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

// No -ffast-math: it would change the floating-point mode of the whole process and the meaning of
// NaN.
const std::vector<std::string> kFlags{"-std=c++20",      "-fPIC",
                                      "-shared",         "-pthread",
                                      "-fopenmp",        "-fdiagnostics-color=never",
                                      "-fmax-errors=20", "-Wl,-z,defs,-z,now,-z,noexecstack"};

// For linking CUDA objects into a library, as nvcc would; see cuda_flags().
const std::vector<std::string> kCudaLinkFlags{
    "-shared", "-pthread", "-fdiagnostics-color=never",
    "-Wl,-z,defs,-z,now,-z,noexecstack,--warn-unresolved-symbols,--warn-once"};
// For joining objects into one object.
const std::vector<std::string> kJoinFlags{"-r", "-nostdlib", "-fdiagnostics-color=never"};

// In a build's folder: the sources, the headers they may include, and what the compiler writes.
constexpr char kSources[] = "src", kHeaders[] = "abi", kOutput[] = "out";
constexpr char kExports[] = "exports.map";    // in the folder of the sources
constexpr char kRules[] = "headers.d";        // what was included
constexpr char kProduct[] = "submission.so";  // the library or object, in the compiler's folder
constexpr int kLogLines = 30;                 // of the log, in the record
constexpr std::size_t kLogLimit = 1 << 20;    // bytes kept of the beginning
constexpr std::size_t kTailLimit = 64 << 10;  // bytes kept of the end, where linker messages are
constexpr std::size_t kLibraryLimit = 128u << 20;

// Creates a folder that the sandbox's user can enter and read, regardless of the umask.
void make_folder(const fs::path& path) {
  fs::create_directories(path);
  fs::permissions(path, fs::perms(0755));
}

// A temporary folder in the cache's workplace; removed on destruction.
struct BuildFolder {
  explicit BuildFolder(const fs::path& parent) {
    static std::atomic<unsigned> next{0};
    path = parent / fmt::format("build-{}", next++);
    make_folder(path);
  }
  ~BuildFolder() {
    std::error_code ec;
    fs::remove_all(path, ec);
  }
  fs::path path;
};

void write_source(const fs::path& folder, const SourceFile& file) {
  const fs::path path = folder / file.name;
  for (fs::path parent = folder; const fs::path& part : fs::path(file.name).parent_path()) {
    make_folder(parent /= part);
  }
  std::ofstream out(path, std::ios::binary);
  out << file.contents;
  out.close();
  if (!out) fail_with_errno("write", path);
  fs::permissions(path, fs::perms(0644));
}

// Puts all that the compiler reads into a build's folder.
void write_inputs(const fs::path& folder, const BuildRequest& request,
                  const std::vector<SourceFile>& public_headers) {
  for (const char* part : {kSources, kHeaders, kOutput}) make_folder(folder / part);
  for (const SourceFile& file : request.sources) write_source(folder / kSources, file);
  for (const fs::path& object : request.objects) {
    write_source(folder / kSources, {object.filename(), read_file(object)});
  }
  if (!request.exports.empty()) {
    write_source(folder / kSources, {kExports, fmt::format("{{ global: {}; local: *; }};\n",
                                                           fmt::join(request.exports, "; "))});
  }
  for (const SourceFile& file : request.headers) write_source(folder / kHeaders, file);
  for (const SourceFile& file : public_headers) write_source(folder / kHeaders, file);
}

bool is_translation_unit(const std::string& name, const BuildRequest& request) {
  const bool links = !request.objects.empty();
  if (request.language == Language::cuda) return name.ends_with(links ? ".s" : ".cu");
  if (name.ends_with(".s")) return request.object || links;
  return name.ends_with(".cpp") || name.ends_with(".cc");
}

// Objects are linked by g++ in either language.
bool is_by_nvcc(const BuildRequest& request) {
  return request.language == Language::cuda && request.objects.empty();
}

struct CompilerRun {
  std::string log;
  bool cut = false;  // the middle of the log is missing
  bool timed_out = false;
  sandbox::Exit exit;
};

// Collects the compiler's output until it exits or its time is up.
CompilerRun watch(sandbox::Process& process, int log_fd, double time_limit_s) {
  CompilerRun run;
  std::string tail;
  const double deadline = steady_seconds() + time_limit_s;
  const auto drain = [&] {
    char chunk[8192];
    ssize_t n;
    while ((n = ::read(log_fd, chunk, sizeof chunk)) > 0) {
      const std::size_t room = kLogLimit - std::min(kLogLimit, run.log.size());
      const std::size_t taken = std::min(room, static_cast<std::size_t>(n));
      run.log.append(chunk, taken);
      tail.append(chunk + taken, static_cast<std::size_t>(n) - taken);
      if (tail.size() <= 2 * kTailLimit) continue;
      tail.erase(0, tail.size() - kTailLimit);
      run.cut = true;
    }
  };
  for (;;) {
    const double left = deadline - steady_seconds();
    if (left <= 0) {
      run.timed_out = true;
      if (!process.kill())
        throw Error("a compiler was killed and does not end: the kernel holds it back");
    }
    pollfd entries[] = {{log_fd, POLLIN, 0}, {process.pidfd(), POLLIN, 0}};
    if (!run.timed_out) ::poll(entries, 2, static_cast<int>(std::min(left, 1.0) * 1000) + 1);
    drain();
    if (const auto exit = process.wait({})) {
      drain();
      run.log += run.cut ? "\n...\n" + tail : tail;
      run.exit = *exit;
      return run;
    }
  }
}

CompilerRun run_compiler(sandbox::Tier tier, sandbox::Program program, double time_limit_s) {
  Pipe log = make_log_pipe();
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  program.fds = {null.get(), log.write.get(), log.write.get()};
  sandbox::Process process = sandbox::spawn(tier, program);
  log.write.reset();
  return watch(process, log.read.get(), time_limit_s);
}

// A compiler killed by a limit reports that it was killed, or an internal error after SIGXFSZ.
bool hit_a_limit(const CompilerRun& run) {
  static constexpr const char* kSigns[] = {"out of memory",
                                           "virtual memory exhausted",
                                           "cannot allocate memory",
                                           "File size limit exceeded",
                                           "Killed signal terminated program",
                                           "CPU time limit exceeded"};
  return WIFSIGNALED(run.exit.status) || std::ranges::any_of(kSigns, [&](const char* sign) {
           return run.log.find(sign) != std::string::npos;
         });
}

// Whether the sandbox left something that fetch() does not take.
bool is_unusable(const fs::path& from) {
  struct stat info {};
  return ::lstat(from.c_str(), &info) == 0 &&
         (!S_ISREG(info.st_mode) || static_cast<std::size_t>(info.st_size) > kLibraryLimit);
}

// The contents of a file that the sandbox wrote, without following links.
std::optional<std::string> fetch(const fs::path& from) {
  const Fd in(::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!in || ::fstat(in.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<std::size_t>(info.st_size) > kLibraryLimit) {
    return std::nullopt;
  }
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pread(in.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n <= 0) return std::nullopt;
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

// The names that an object defines, one line each, according to the linker's output about traced
// symbols.
std::string defined_among(const std::vector<std::string>& names, const std::string& log) {
  std::string found;
  for (const std::string& name : names) {
    if (log.find(fmt::format(": definition of {}\n", name)) != std::string::npos)
      found += fmt::format("it defines {}, which others take from a library\n", demangled(name));
  }
  return found;
}

// Names that a submission may not use or define, one line each, by the linker's output.
std::string forbidden_names(const BuildRequest& request, const std::string& log) {
  const std::string foreign =
      request.language == Language::cuda ? foreign_symbols(log) : std::string();
  return foreign.empty() ? defined_among(request.reserved, log) : foreign;
}

// Strips the outside folder from paths: in tiers that share the host's file tree the compiler
// prints full paths.
std::string with_names_inside(std::string log, const fs::path& folder) {
  const std::string outside = folder.string() + "/";
  for (std::size_t at = 0; (at = log.find(outside, at)) != std::string::npos;) {
    log.replace(at, outside.size(), "/");
  }
  return log;
}

// A full disk makes the compiler fail through no fault of the sources. Sources can make it print
// anything, so its message counts only if there really is little room.
void require_room(const fs::path& folder, const std::string& log) {
  constexpr std::uint64_t kNone = 16u << 20, kLittle = 1u << 30;
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return;
  const std::uint64_t room = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  const bool complains = log.find("No space left on device") != std::string::npos ||
                         log.find("Disk quota exceeded") != std::string::npos;
  if (room < kNone || (room < kLittle && complains)) {
    throw TransientFault(fmt::format(  // other builds remove their files
        "the compiler failed with {:.1f} MiB free in {}: make room there, or name another folder "
        "with --cache",
        static_cast<double>(room) / (1 << 20), folder.string()));
  }
}

// The CPU facts that -march=native depends on.
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

// What is built by another version is built again, so the version has to be known.
std::string version_of(const std::string& compiler) {
  std::string version = first_line_of(quoted(compiler) + " --version 2>/dev/null");
  if (version.empty())
    throw Error(fmt::format("{} --version prints nothing: set ASSAY_CXX to a g++", compiler));
  return version;
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

Builder::Builder(sandbox::Tier tier, fs::path root, fs::path cache, std::uint64_t cache_limit,
                 std::string target)
    : tier_(tier),
      root_(std::move(root)),
      cache_(tier, std::move(cache), cache_limit),
      compiler_(find_compiler()),
      version_(version_of(compiler_)),
      cpu_(cpu_identity()),
      target_(std::move(target)),
      toolkit_(find_cuda_toolkit()) {
  require_target(compiler_, target_);
  for (const char* name : {"assay/abi.h", "assay/attention.h"}) {
    public_headers_.push_back({name, read_file(root_ / "include" / name)});
  }
}

namespace {

// `target` applies to C++ only.
std::vector<std::string> flags_of(const BuildRequest& request, const std::string& architecture,
                                  const std::string& target) {
  if (request.object && !request.objects.empty()) return kJoinFlags;
  if (request.language == Language::cuda) {
    if (!is_by_nvcc(request)) return kCudaLinkFlags;
    std::vector<std::string> flags = cuda_flags(architecture, request.machine_code);
    if (request.assembly) {
      std::erase(flags, "-lineinfo");
      flags.insert(flags.end(), {"-c", "-Xcompiler", "-S"});
    }
    if (request.warnings) flags.insert(flags.end(), {"-Xcompiler", "-Wall,-Wextra"});
    return flags;
  }
  std::vector<std::string> flags = kFlags;
  if (request.warnings) flags.insert(flags.end(), {"-Wall", "-Wextra"});
  flags.insert(flags.begin() + 1, {request.for_speed ? "-O3" : "-O1", "-march=" + target});
  return flags;
}

}  // namespace

std::string public_command(Language language) {
  BuildRequest request;
  request.language = language;
  const bool cuda = language == Language::cuda;
  return fmt::format(
      "{} {} -I . -o submission.so {}", cuda ? "nvcc" : "g++",
      fmt::join(flags_of(request, cuda ? kCudaArchitectures[0] : "", kNativeTarget), " "),
      main_file(language));
}

std::string Builder::entry_name(const BuildRequest& request,
                                const std::string& architecture) const {
  std::string text =
      version_ + "\n" + (request.language == Language::cuda ? toolkit_->version : cpu_);
  for (const auto& flag : flags_of(request, architecture, target_)) text += flag + "\n";
  for (const auto* files : {&request.sources, &request.headers, &public_headers_}) {
    for (const SourceFile& file : *files) {
      text += fmt::format("{} {}\n", file.name, file.contents.size()) + file.contents;
    }
  }
  // An object's name is a hash of all it was made from.
  for (const fs::path& object : request.objects) text += object.filename().string() + "\n";
  for (const std::string& name : request.exports) text += "shows " + name + "\n";
  for (const std::string& name : request.reserved) text += "reserves " + name + "\n";
  if (request.assembly) text += "assembly\n";
  return sha256_hex(text) + (request.object || request.assembly ? ".o" : ".so");
}

BuildResult Builder::build(const BuildRequest& request) {
  try {
    return look_up_or_compile(request);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error("cannot build: this process has no memory left");
  } catch (const std::exception& e) {
    throw Error(fmt::format("cannot build in {}: {}", cache_.workplace().string(), e.what()));
  }
}

// In the order they are tried.
std::vector<std::string> Builder::architectures(const BuildRequest& request) const {
  if (request.language != Language::cuda) return {""};
  const auto asks = [](const SourceFile& s) { return asks_for_features(s.contents); };
  const std::span all(kCudaArchitectures);
  const auto tried = std::ranges::any_of(request.sources, asks) ? all.last(1) : all;
  return {tried.begin(), tried.end()};
}

BuildResult Builder::look_up_or_compile(const BuildRequest& request) {
  BuildResult result;
  if (request.language == Language::cuda && !toolkit_) {
    result.record.verdict = Verdict::skipped;
    result.record.log = kNoToolkit;
    return result;
  }
  if (auto found = look_up(request)) return *found;
  const FileLock lock = cache_.lock(entry_name(request, architectures(request).front()));
  if (auto found = look_up(request)) return *found;  // built by the previous holder of the lock
  for (const std::string& architecture : architectures(request)) {
    result = compile(request, architecture);
    if (result.record.verdict != Verdict::build_error || !lacks_features(result.record.log)) break;
  }
  return result;
}

std::optional<BuildResult> Builder::look_up(const BuildRequest& request) {
  for (const std::string& architecture : architectures(request)) {
    const auto library = cache_.find(entry_name(request, architecture));
    if (!library) continue;
    BuildResult result;
    if (request.warnings) {
      result.warnings = kept_warnings(entry_name(request, architecture));
      if (!result.warnings) continue;  // evicted from the cache
    }
    result.library = *library;
    result.record.cached = true;
    result.record.command = command_line(request, architecture);
    return result;
  }
  return std::nullopt;
}

namespace {

std::string warnings_entry(const std::string& entry) {
  return fs::path(entry).replace_extension(".warnings");
}

}  // namespace

std::optional<CompilerWarnings> Builder::kept_warnings(const std::string& entry) {
  const auto file = cache_.find(warnings_entry(entry));
  return file ? warnings_from(read_file(*file)) : std::nullopt;
}

void Builder::check() {
  BuildRequest request;
  request.sources = {
      {"submission.cpp", "#include <cstddef>\nextern \"C\" int f() { return 0; }\n"}};
  const BuildResult result = compile(request, "");
  if (result.record.verdict != Verdict::ok) {
    const std::string& log = result.record.log;
    throw Error(
        fmt::format("the compiler {} fails in the sandbox ({}), which shows it only /usr: {}",
                    compiler_, to_string(tier_), log.substr(0, log.find('\n'))));
  }
  const std::string why =
      sandbox::why_not_loaded(tier_, sandbox::worker_image_fd(), result.library);
  if (!why.empty()) {
    throw Error(fmt::format("libraries do not load in the sandbox ({}): {} from {}",
                            to_string(tier_), why, cache_.workplace().string()));
  }
}

std::vector<std::string> Builder::arguments(const BuildRequest& request,
                                            const std::string& architecture,
                                            const std::string& source, const std::string& abi,
                                            const std::string& out) const {
  const bool by_nvcc = is_by_nvcc(request);
  std::vector<std::string> argv{by_nvcc ? toolkit_->nvcc.string() : compiler_};
  const std::vector<std::string> flags = flags_of(request, architecture, target_);
  argv.insert(argv.end(), flags.begin(), flags.end());
  if (by_nvcc) argv.insert(argv.end(), {"-ccbin", compiler_});
  if (request.object && request.objects.empty()) argv.emplace_back("-c");
  if (request.assembly && !by_nvcc) argv.emplace_back("-S");
  if (!request.objects.empty() && !request.object) argv.emplace_back("-s");
  if (!request.exports.empty())
    argv.push_back(fmt::format("-Wl,--version-script={}/{}", source, kExports));
  if (!request.reserved.empty()) argv.emplace_back("-Wl,--no-demangle");
  for (const std::string& name : request.reserved) argv.push_back("-Wl,--trace-symbol=" + name);
  argv.insert(argv.end(), {"-I" + abi, "-o", out + "/" + kProduct});
  for (const SourceFile& file : request.sources) {
    if (is_translation_unit(file.name, request)) argv.push_back(source + "/" + file.name);
  }
  for (const fs::path& object : request.objects) {
    argv.push_back(source + "/" + object.filename().string());
  }
  return argv;
}

// The command shown in the record; the same whether the result is fresh or cached.
std::string Builder::command_line(const BuildRequest& request,
                                  const std::string& architecture) const {
  return fmt::format("{}",
                     fmt::join(arguments(request, architecture, "/src", "/abi", "/out"), " "));
}

sandbox::Program Builder::compiler_program(const BuildRequest& request) const {
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
  if (!is_by_nvcc(request)) return program;
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

sandbox::Program Builder::program_in(const fs::path& folder, const BuildRequest& request,
                                     const std::string& architecture) const {
  const sandbox::Mount source{folder / kSources, "/src", false};
  const sandbox::Mount abi{folder / kHeaders, "/abi", false};
  const sandbox::Mount out{folder / kOutput, "/out", true};
  sandbox::Program program = compiler_program(request);
  program.mounts.insert(program.mounts.end(), {source, abi, out});
  program.argv = arguments(request, architecture, visible(tier_, source), visible(tier_, abi),
                           visible(tier_, out));
  program.env.push_back("TMPDIR=" + visible(tier_, out));
  // A blank would end the name of the file.
  const std::string rules = fmt::format("{}/{}", visible(tier_, out), kRules);
  if (rules.find(' ') == std::string::npos)
    program.env.push_back(fmt::format("{}={}", kRulesVariable, rules));
  return program;
}

fs::path Builder::keep(const std::string& entry, const std::string& product,
                       const std::optional<CompilerWarnings>& warnings) {
  const std::string said = warnings ? warnings_text(*warnings) : "";
  if (warnings) cache_.hold(warnings_entry(entry), said);
  cache_.hold(entry, product);
  if (warnings) cache_.share(warnings_entry(entry), said.size());
  return cache_.share(entry, product.size());
}

BuildResult Builder::compile(const BuildRequest& request, const std::string& architecture) {
  const BuildFolder folder(cache_.workplace());
  write_inputs(folder.path, request, public_headers_);

  BuildResult result;
  result.record.command = command_line(request, architecture);
  const double start = steady_seconds();
  CompilerRun run =
      run_compiler(tier_, program_in(folder.path, request, architecture), request.time_limit_s);
  run.log = with_names_inside(std::move(run.log), folder.path);
  std::optional<CompilerWarnings> warnings;
  if (request.warnings) warnings = warnings_in(run.log, run.cut);
  const bool cuda = request.language == Language::cuda;
  if (request.warnings || cuda) run.log = without_warnings(run.log);  // nvcc warns unasked
  result.record.seconds = steady_seconds() - start;
  result.record.log = printable(cuda ? without_linker_warnings(run.log) : run.log, kLogLines);

  if (run.timed_out) {
    result.record.verdict = Verdict::build_limit;
    result.record.log =
        fmt::format("the compiler was ended after {:.0f} s\n", request.time_limit_s) +
        result.record.log;
  } else if (run.exit.status != 0) {
    require_room(folder.path, run.log);
    result.record.verdict = hit_a_limit(run) ? Verdict::build_limit : Verdict::build_error;
  } else if (const std::string names = forbidden_names(request, run.log); !names.empty()) {
    result.record.verdict = Verdict::build_error;
    result.record.log = printable(names, kLogLines);
  } else if (is_unusable(folder.path / kOutput / kRules)) {
    result.record.verdict = Verdict::build_limit;
    result.record.log = "the list of the headers that it includes is too long";
  } else if (const std::string headers =
                 foreign_headers(fetch(folder.path / kOutput / kRules).value_or(""), folder.path,
                                 is_by_nvcc(request) ? toolkit_->root : fs::path());
             !headers.empty()) {
    result.record.verdict = Verdict::build_error;
    result.record.log = printable(headers, kLogLines);
  } else if (const auto product = fetch(folder.path / kOutput / kProduct)) {
    result.library = keep(entry_name(request, architecture), *product, warnings);
    result.warnings = std::move(warnings);
  } else {
    result.record.verdict = Verdict::build_error;
    result.record.log = "the compiler left no usable file\n" + result.record.log;
  }
  if (request.warnings && run.cut && result.record.verdict != Verdict::ok) {
    // With this many warnings, the errors may be in the part of the log that was cut.
    BuildRequest quiet = request;
    quiet.warnings = false;
    return compile(quiet, architecture);
  }
  return result;
}

}  // namespace assay
