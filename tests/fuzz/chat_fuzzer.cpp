// libFuzzer target of chat answers: whatever a model replies, the accepted files are valid for a
// submission and come from the reply, and the messages about it are plain text.
#include <set>

#include "assay/error.h"
#include "fuzz/promises.h"
#include "intake/markdown.h"

namespace {

using namespace assay;

void check(const intake::Extracted& e, std::size_t size) {
  fuzz::require(!e.files.empty(), "an answer has files");
  fuzz::require(e.files.front().name == main_file(e.language), "the main file is the first");
  std::set<std::string> names;
  std::size_t bytes = 0;
  for (const SourceFile& file : e.files) {
    fuzz::require(objection_to_name(file.name).empty() && is_source_name(file.name),
                  "names are such as a submission may have", file.name);
    fuzz::require(names.insert(file.name).second, "no file is there twice", file.name);
    fuzz::require(file.contents.size() <= kLargestSource, "files are not too large");
    bytes += file.contents.size();
  }
  fuzz::require(bytes <= size + names.size(), "nothing is made up");
  fuzz::require_safe(e.how, "what is said about it is plain text");
}

void extract(std::string_view text, std::optional<Language> language,
             const std::vector<std::size_t>& blocks) {
  try {
    check(intake::extract(text, language, {{"f", "g"}, blocks}), text.size());
  } catch (const Error& refusal) {
    fuzz::require(refusal.what()[0] != '\0', "refusals have a reason");
    fuzz::require_safe(refusal.what(), "refusals are plain text");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::text_of(data, size);
  extract(text, std::nullopt, {});
  extract(text, Language::cuda, {});
  extract(text, std::nullopt, {2, 1});
  return 0;
}
