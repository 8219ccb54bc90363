#include "sandbox/runtime_files.h"

#include <link.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "assay/error.h"

namespace assay::sandbox {
namespace fs = std::filesystem;
namespace {

// Beginnings of file names. assay itself is linked with these libraries, so it knows where they
// are.
constexpr std::array<std::string_view, 5> kLinked{"ld-linux", "libc.so", "libm.so", "libstdc++.so",
                                                  "libgcc_s.so"};
constexpr std::string_view kOfImages = "libfmt.so";
// Stubs beside the C library, for parts of it that used to be libraries.
constexpr std::array<const char*, 3> kBesideC{"libpthread.so.0", "libdl.so.2", "librt.so.1"};
constexpr const char* kBesideCxx = "libgomp.so.1";  // answers are compiled with -fopenmp

bool begins_with_one_of(const std::string& name, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view b) { return name.starts_with(b); });
}

std::vector<fs::path> loaded_objects() {
  std::vector<fs::path> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* to) {
        const fs::path path = object->dlpi_name;
        if (path.is_absolute()) static_cast<std::vector<fs::path>*>(to)->push_back(path);
        return 0;
      },
      &paths);
  return paths;
}

struct Files {
  std::vector<fs::path> answer, image;
  fs::path c_folder;

  Files() {
    const auto add_beside = [&](const fs::path& library, const char* name) {
      const fs::path path = library.parent_path() / name;
      if (fs::exists(path)) answer.push_back(path);
    };
    for (const fs::path& path : loaded_objects()) {
      const std::string name = path.filename();
      if (begins_with_one_of(name, kLinked)) answer.push_back(path);
      if (name.starts_with(kOfImages)) image.push_back(path);
      if (name.starts_with("libc.so")) {
        c_folder = path.parent_path();
        for (const char* other : kBesideC) add_beside(path, other);
      }
      if (name.starts_with("libstdc++.so")) add_beside(path, kBesideCxx);
    }
    image.insert(image.end(), answer.begin(), answer.end());
  }
};

const Files& files() {
  static const Files instance;
  return instance;
}

}  // namespace

std::vector<Mount> runtime_mounts(Runtime runtime) {
  const std::vector<fs::path>& paths = runtime == Runtime::answer ? files().answer : files().image;
  if (files().c_folder.empty()) throw Error("cannot tell where the C library is");
  std::vector<Mount> mounts;
  for (const fs::path& path : paths) mounts.push_back({path, path, false});
  const char* cache = "/etc/ld.so.cache";
  if (fs::exists(cache)) mounts.push_back({cache, cache, false});
  return mounts;
}

fs::path foreign_library() {
  std::error_code ec;
  for (fs::directory_iterator at(files().c_folder, ec), end; !ec && at != end; at.increment(ec)) {
    const std::string name = at->path().filename();
    const bool library = name.starts_with("lib") && name.find(".so.") != std::string::npos;
    const bool ours = std::ranges::any_of(files().image, [&](const fs::path& path) {
      std::error_code different;
      return fs::equivalent(path, at->path(), different);
    });
    if (library && !ours && fs::is_regular_file(at->path(), ec)) return at->path();
  }
  return {};
}

}  // namespace assay::sandbox
