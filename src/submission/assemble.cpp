#include "submission/assemble.h"

#include <algorithm>
#include <utility>

namespace assay {

Submission submission_from(std::vector<SourceFile> files, Language language) {
  Submission s;
  s.language = language;
  std::ranges::sort(files, {}, &SourceFile::name);
  for (SourceFile& file : files) {
    if (!is_of(file.name, language)) continue;
    if (file.name == tests_file(language)) {
      s.test_source = std::move(file.contents);
    } else {
      s.sources.push_back(std::move(file));
    }
  }
  // Not std::ranges::stable_partition: clang 14 cannot compile its result.
  std::stable_partition(s.sources.begin(), s.sources.end(),
                        [&](const SourceFile& f) { return f.name == main_file(language); });
  return s;
}

}  // namespace assay
