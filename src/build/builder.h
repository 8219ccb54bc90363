// Sources -> shared object, or object to be linked later, compiled in the sandbox and cached by content.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "build/nvcc.h"
#include "sandbox/sandbox.h"
#include "submission/submission.h"

namespace assay {

struct BuildRequest {
  // Every .cpp and .cc is compiled, or every .cu where the language is CUDA; the rest can be included.
  std::vector<SourceFile> sources;
  std::vector<SourceFile> headers;  // the challenge's abi.h and what else may be included
  double time_limit_s = 60;
  Language language = Language::cpp;
  bool for_speed = true;  // C++ only: -O3; else -O1, which compiles in a third to half the time
  // C++ only: make an object of one source instead of a library; or link the objects of such requests into a
  // library, without the names of what is local to them.
  bool object = false;
  std::vector<std::filesystem::path> objects{};
};

struct BuildResult {
  BuildRecord record;
  std::filesystem::path library;  // or the object; empty unless record.verdict is ok
};

class Builder {
 public:
  // `root` holds include/assay; `cache` is created. Throws Error when there is no compiler.
  Builder(sandbox::Tier, std::filesystem::path root, std::filesystem::path cache);

  // Thread-safe. Never throws for a fault of the sources. CUDA without a toolkit is skipped.
  BuildResult build(const BuildRequest&);

  const std::string& compiler() const { return compiler_; }         // path
  const std::string& compiler_version() const { return version_; }  // first line
  const std::optional<CudaToolkit>& cuda_toolkit() const { return toolkit_; }

 private:
  // `architecture` is that of PTX, "" for C++.
  std::filesystem::path library_path(const BuildRequest&, const std::string& architecture) const;
  // The compiler's command line with the folders as it sees them.
  std::vector<std::string> arguments(const BuildRequest&, const std::string& architecture,
                                     const std::string& source, const std::string& abi,
                                     const std::string& out) const;
  sandbox::Program compiler_program(const BuildRequest&) const;
  BuildResult compile(const BuildRequest&, const std::string& architecture);

  sandbox::Tier tier_;
  std::filesystem::path root_, cache_;
  std::string compiler_, version_, cpu_;
  std::optional<CudaToolkit> toolkit_;
  std::vector<SourceFile> public_headers_;  // include/assay's C headers, for submissions
};

// g++ from PATH or the environment variable ASSAY_CXX; throws Error with the remedy.
std::string find_compiler();

}  // namespace assay
