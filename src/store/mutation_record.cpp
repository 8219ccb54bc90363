#include "store/mutation_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>
#include <utility>

#include "assay/error.h"
#include "records/strict_json.h"
#include "spec/json_schema.h"
#include "store/folder_lock.h"
#include "util/files.h"

namespace assay::store {
namespace {

using mutate::ChallengeScore;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kSchema = 3;

Json to_json(const ChallengeScore& s) {
  return {{"challenge", s.challenge},
          {"of", s.of},
          {"seed", std::to_string(s.seed)},
          {"possible", s.possible},
          {"does_not_compile", s.tally.does_not_compile},
          {"same_code", s.tally.same_code},
          {"killed", s.tally.killed},
          {"by_measuring", s.tally.by_measuring},
          {"listed", s.tally.listed},
          {"survived", s.tally.survived},
          {"judged_by", fmt::format("{}", fmt::join(s.judged_by, " "))}};
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

ChallengeScore score_from(const nlohmann::json& json, const std::string& pointer) {
  const StrictObject o(json, pointer,
                       {"challenge", "of", "seed", "possible", "does_not_compile", "same_code",
                        "killed", "by_measuring", "listed", "survived", "judged_by"});
  const auto count = [&](const char* key) { return static_cast<std::size_t>(o.count(key)); };
  ChallengeScore s;
  s.challenge = o.name("challenge");
  s.of = o.name("of");
  s.seed = o.seed("seed");
  s.possible = count("possible");
  s.tally.does_not_compile = count("does_not_compile");
  s.tally.same_code = count("same_code");
  s.tally.killed = count("killed");
  s.tally.listed = count("listed");
  s.tally.survived = count("survived");
  s.tally.by_measuring = count("by_measuring");
  s.judged_by = words_of(o.name("judged_by"));
  return s;
}

std::tuple<const std::string&, const std::string&> key(const ChallengeScore& s) {
  return {s.challenge, s.of};
}

}  // namespace

std::filesystem::path mutation_record_path(const std::filesystem::path& results) {
  return results / "mutants.json";
}

std::vector<ChallengeScore> read_mutation_record(const std::filesystem::path& results) {
  const std::filesystem::path file = mutation_record_path(results);
  std::vector<ChallengeScore> scores;
  if (!std::filesystem::exists(file)) return scores;
  const nlohmann::json document = parse_json(read_file(file), file.string());
  try {
    const StrictObject record(document, "", {"schema", "scores"});
    if (record.count("schema") != kSchema) record.fail("schema", "another version's");
    record.each("scores", [&](const nlohmann::json& json, const std::string& pointer) {
      scores.push_back(score_from(json, pointer));
    });
  } catch (const Error& e) {
    throw Error(
        fmt::format("{}: {}: move the file away; `assay selftest --mutants N --record` writes it "
                    "again",
                    file.string(), e.what()));
  }
  std::ranges::sort(scores, {}, key);
  return scores;
}

void add_to_mutation_record(const std::filesystem::path& results,
                            const std::vector<ChallengeScore>& now) {
  create_folder(results);
  const FolderLock lock(results);
  std::vector<ChallengeScore> all = now;
  for (ChallengeScore& before : read_mutation_record(results)) {
    const bool again =
        std::ranges::any_of(now, [&](const ChallengeScore& s) { return key(s) == key(before); });
    if (!again) all.push_back(std::move(before));
  }
  std::ranges::sort(all, {}, key);
  Json scores = Json::array();
  for (const ChallengeScore& s : all) scores.push_back(to_json(s));
  write_file_atomically(mutation_record_path(results),
                        Json{{"schema", kSchema}, {"scores", scores}}.dump(2) + "\n");
}

}  // namespace assay::store
