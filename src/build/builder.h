// Sources -> shared object, or object to be linked later, compiled in the sandbox and cached by
// content.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "assay/code_facts.h"
#include "assay/results.h"
#include "build/cache.h"
#include "build/nvcc.h"
#include "sandbox/sandbox.h"
#include "submission/submission.h"

namespace assay {

struct BuildRequest {
  // Every .cpp and .cc is compiled, or every .cu if the language is CUDA; other files can be
  // included.
  std::vector<SourceFile> sources;
  std::vector<SourceFile> headers;  // the challenge's abi.h and other headers it offers
  double time_limit_s = 60;
  Language language = Language::cpp;
  // CUDA only: besides the PTX, also generate machine code from it, which a real GPU runs and which
  // tells the simulator how many registers kernels use.
  bool machine_code = false;
  // Enable compiler warnings (-Wall -Wextra); they do not change the output.
  bool warnings = false;
  bool for_speed = true;  // C++ only: -O3; else -O1, which compiles in a third to half the time
  // Make an object from one source instead of a library; or link `objects` of such requests into a
  // library, stripped of local names. In C++, and wherever there are objects to link, sources may
  // be assembly (.s).
  bool object = false;
  // Make the assembly of one source, as text. For CUDA it is the host code's assembly, which
  // contains the PTX and assembles like that of C++; the PTX holds no source line information.
  bool assembly = false;
  std::vector<std::filesystem::path> objects{};
  // If `objects` are joined into an object: names that none of them may define, because what will
  // be linked with it takes them from a library.
  std::vector<std::string> reserved{};
  // The only names that such a library exports; empty: all global ones.
  std::vector<std::string> exports{};
};

struct BuildResult {
  BuildRecord record;
  // The library or object; empty unless record.verdict is ok. Lasts as long as the builder.
  std::filesystem::path library;
  // Set if the request asked for them and was built, now or earlier.
  std::optional<CompilerWarnings> warnings{};
};

class Builder {
 public:
  // `root` holds include/assay; `cache` is created. C++ is compiled for `target`. Throws Error if
  // there is no compiler, or if this machine cannot run code for the target.
  Builder(sandbox::Tier, std::filesystem::path root, std::filesystem::path cache,
          std::uint64_t cache_limit = kDefaultCacheLimit, std::string target = kNativeTarget);

  // Thread-safe; waits for an identical build already running in this or another process. Throws
  // nothing but Error, and never for a fault of the sources. CUDA without a toolkit is skipped.
  BuildResult build(const BuildRequest&);

  // Compiles a line of C++ in the sandbox, bypassing the cache, and loads it there. Throws Error
  // with the cause if submissions cannot be run here.
  void check();

  const std::string& compiler() const { return compiler_; }         // path
  const std::string& compiler_version() const { return version_; }  // first line
  const std::string& target() const { return target_; }
  const std::optional<CudaToolkit>& cuda_toolkit() const { return toolkit_; }
  const BuildCache& cache() const { return cache_; }

 private:
  // `architecture` is the PTX architecture, "" for C++.
  std::string entry_name(const BuildRequest&, const std::string& architecture) const;
  // The compiler's command line, with folders as seen inside the sandbox.
  std::vector<std::string> arguments(const BuildRequest&, const std::string& architecture,
                                     const std::string& source, const std::string& abi,
                                     const std::string& out) const;
  std::string command_line(const BuildRequest&, const std::string& architecture) const;
  // The compiler without its command line: mounts, limits and environment.
  sandbox::Program compiler_program(const BuildRequest&) const;
  // The compiler with its command line, for the inputs in a build's folder.
  sandbox::Program program_in(const std::filesystem::path& folder, const BuildRequest&,
                              const std::string& architecture) const;
  // Puts a library or object into the cache, and the warnings beside it.
  std::filesystem::path keep(const std::string& entry, const std::string& product,
                             const std::optional<CompilerWarnings>&);
  std::optional<CompilerWarnings> kept_warnings(const std::string& entry);
  std::vector<std::string> architectures(const BuildRequest&) const;
  BuildResult look_up_or_compile(const BuildRequest&);
  std::optional<BuildResult> look_up(const BuildRequest&);
  BuildResult compile(const BuildRequest&, const std::string& architecture);

  sandbox::Tier tier_;
  std::filesystem::path root_;
  BuildCache cache_;
  std::string compiler_, version_, cpu_, target_;
  std::optional<CudaToolkit> toolkit_;
  std::vector<SourceFile> public_headers_;  // include/assay's C headers, for submissions
};

// A command that compiles a submission as the builder does, in a folder that holds it and abi.h.
std::string public_command(Language);

// g++ from PATH or the environment variable ASSAY_CXX; throws Error with the remedy.
std::string find_compiler();

}  // namespace assay
