#include "task/flatten.h"

#include <fmt/format.h>

#include <set>
#include <sstream>

#include "assay/error.h"
#include "util/files.h"

namespace assay::task {
namespace fs = std::filesystem;
namespace {

constexpr char kInclude[] = "#include \"";

class Flattener {
 public:
  explicit Flattener(const fs::path& include) : include_(include) {}

  void add(const fs::path& header) {
    std::istringstream in(read_file(header));
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with(kInclude)) {
        text_ += line + "\n";
        continue;
      }
      const std::size_t from = sizeof kInclude - 1;
      const std::string name = line.substr(from, line.find('"', from) - from);
      if (done_.insert(name).second) add(find(name, header));
    }
  }
  std::string text() const { return text_; }

 private:
  fs::path find(const std::string& name, const fs::path& from) const {
    for (const fs::path& folder : {from.parent_path(), include_}) {
      if (fs::exists(folder / name)) return folder / name;
    }
    throw Error(fmt::format("{} includes \"{}\", which is neither beside it nor in {}",
                            from.string(), name, include_.string()));
  }

  fs::path include_;
  std::set<std::string> done_;
  std::string text_;
};

}  // namespace

std::string flattened(const fs::path& header, const fs::path& include) {
  Flattener all(include);
  all.add(header);
  return all.text();
}

}  // namespace assay::task
