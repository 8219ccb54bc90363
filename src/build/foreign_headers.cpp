#include "build/foreign_headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <system_error>

namespace assay {
namespace fs = std::filesystem;
namespace {

// Folders of the C library, of the kernel's interface and of the C++ library below /usr/include
// and below the folder of a target in it; and those of TBB, which libstdc++'s <execution> includes
// where it is installed.
constexpr std::array kOfTheSystem{"oneapi", "tbb", "arpa",     "asm",  "asm-generic", "bits",
                                  "c++",    "drm", "finclude", "gnu",  "linux",       "misc",
                                  "mtd",    "net", "netinet",  "rdma", "rpc",         "scsi",
                                  "sound",  "sys", "video",    "xen"};
// Where a toolkit is installed into /usr itself.
constexpr std::array kOfTheToolkit{"cccl",  "cooperative_groups", "crt", "cub", "cuda", "nv",
                                   "thrust"};
constexpr std::array kOfTheCompiler{"/usr/lib/gcc/", "/usr/lib64/gcc/", "/usr/libexec/gcc/",
                                    "/usr/lib/clang/", "/usr/lib64/clang/"};

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_foreign(const std::string& path, const std::string& toolkit) {
  const bool shares_usr = toolkit == "/usr";
  if (!toolkit.empty() && !shares_usr && path.starts_with(toolkit + "/")) return false;
  if (!path.starts_with("/usr/")) return false;  // the answer's own
  if (path.starts_with("/usr/lib/llvm-") && path.find("/lib/clang/") != std::string::npos)
    return false;
  if (std::ranges::any_of(kOfTheCompiler,
                          [&](const char* folder) { return path.starts_with(folder); }))
    return false;
  constexpr std::string_view kInclude = "/usr/include/";
  if (!path.starts_with(kInclude)) return true;
  std::string_view rest = std::string_view(path).substr(kInclude.size());
  std::string_view first = rest.substr(0, rest.find('/'));
  if (first.find("-linux-") != std::string_view::npos && first.size() < rest.size()) {
    rest.remove_prefix(first.size() + 1);
    first = rest.substr(0, rest.find('/'));
  }
  if (first.size() == rest.size() || contains(kOfTheSystem, first)) return false;
  return !(shares_usr && contains(kOfTheToolkit, first));
}

}  // namespace

std::string foreign_headers(std::string_view rules, const fs::path& own, const fs::path& toolkit) {
  std::set<std::string> foreign;
  std::istringstream in{std::string(rules)};
  std::error_code ec;
  const std::string below_own = fs::weakly_canonical(own, ec).string() + "/";
  for (std::string word; in >> word;) {
    if (word == "\\" || word.ends_with(':')) continue;
    const fs::path path = fs::weakly_canonical(word, ec);
    if (ec || path.string().starts_with(below_own)) continue;
    if (is_foreign(path, toolkit)) foreign.insert(path);
  }
  if (foreign.empty()) return "";
  const std::size_t more = foreign.size() - 1;
  const std::string others =
      more == 0 ? "" : fmt::format(" and {} more {}", more, more == 1 ? "header" : "headers");
  return fmt::format(
      "it includes {}{}: an answer may use its own headers and the standard library only",
      *foreign.begin(), others);
}

}  // namespace assay
