#include "build/nvcc.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>

#include "assay/error.h"
#include "build/tool.h"
#include "util/shell.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

std::optional<fs::path> executable(const fs::path& path) {
  std::error_code ec;
  if (::access(path.c_str(), X_OK) != 0 || fs::is_directory(path, ec)) return std::nullopt;
  return fs::canonical(path);
}

}  // namespace

std::optional<fs::path> nvcc_path() {
  if (const char* chosen = std::getenv("ASSAY_NVCC")) {
    if (*chosen == '\0') return std::nullopt;
    if (auto path = executable(chosen)) return path;
    throw Error(fmt::format("ASSAY_NVCC names {}, which cannot be executed", chosen));
  }
  if (const auto path = find_in_path("nvcc")) return executable(*path);
  const char* home = std::getenv("CUDA_HOME");
  for (const char* root : {home, "/usr/local/cuda"}) {
    if (root == nullptr) continue;
    if (auto path = executable(fs::path(root) / "bin" / "nvcc")) return path;
  }
  return std::nullopt;
}

std::optional<CudaToolkit> find_cuda_toolkit() {
  const auto nvcc = nvcc_path();
  if (!nvcc) return std::nullopt;
  const std::string version =
      first_line_of(fmt::format("{} --version 2>/dev/null | grep release", quoted(nvcc->string())));
  if (version.find("release 13.") == std::string::npos) return std::nullopt;
  return CudaToolkit{*nvcc, nvcc->parent_path().parent_path(), version};
}

std::vector<std::string> cuda_flags(const std::string& architecture, bool machine_code) {
  constexpr std::string_view kVirtual = "compute_", kReal = "sm_";
  const std::string code = std::string(kReal) + architecture.substr(kVirtual.size()),
                    made = machine_code ? fmt::format("[{},{}]", architecture, code) : architecture;
  // The linker only warns of undefined symbols, so that those of the CUDA runtime can be told from
  // others.
  return {"-std=c++20",
          "-O3",
          "-lineinfo",
          "-gencode",
          fmt::format("arch={},code={}", architecture, made),
          "--no-compress",
          "-cudart",
          "none",
          "-shared",
          "-Xcompiler",
          "-fPIC,-pthread,-fdiagnostics-color=never",
          "-Xlinker",
          "-z,defs,-z,now,-z,noexecstack,--warn-unresolved-symbols"};
}

bool asks_for_features(std::string_view source) {
  constexpr std::string_view kNames[] = {"__CUDA_ARCH_FEAT_SM90_ALL", "__CUDA_ARCH_SPECIFIC__",
                                         "__CUDA_ARCH_FAMILY_SPECIFIC__"};
  return std::ranges::any_of(
      kNames, [&](std::string_view name) { return source.find(name) != std::string_view::npos; });
}

bool lacks_features(const std::string& log) {
  return log.find("not supported on .target") != std::string::npos ||
         log.find("requires .target") != std::string::npos;
}

std::string without_linker_warnings(const std::string& log) {
  std::string kept;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size() - 1) + 1;
    const std::string_view line = std::string_view(log).substr(at, end - at);
    const bool warning = line.find("warning: undefined reference to ") != std::string_view::npos ||
                         (line.find("ld: ") != std::string_view::npos &&
                          line.find(": in function `") != std::string_view::npos);
    if (!warning) kept += line;
    at = end;
  }
  return kept;
}

std::string foreign_symbols(const std::string& log) {
  constexpr std::string_view kMark = "undefined reference to `";
  std::set<std::string> seen;
  std::string found;
  for (std::size_t at = log.find(kMark); at != std::string::npos; at = log.find(kMark, at)) {
    at += kMark.size();
    const std::size_t end = log.find_first_of("'\n", at);
    if (end == std::string::npos) break;
    if (log[end] != '\'') continue;  // cut off
    const std::string symbol = log.substr(at, end - at);
    if (symbol.starts_with("cuda") || symbol.starts_with("__cuda")) continue;
    if (seen.insert(symbol).second) found += fmt::format("undefined reference to `{}'\n", symbol);
  }
  return found;
}

}  // namespace assay
