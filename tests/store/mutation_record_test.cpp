#include "store/mutation_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::store {
namespace {

using mutate::ChallengeScore;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ChallengeScore score(const std::string& challenge, const std::string& of, std::size_t killed) {
  return {challenge, of, {"abc", "def"}, ~std::uint64_t{0}, 300, {1, 2, killed, 4, 5, 6}};
}

class MutationRecordTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  const std::filesystem::path results_ = folder_.path / "results";
};

TEST_F(MutationRecordTest, IsEmptyWhereThereIsNone) {
  EXPECT_THAT(read_mutation_record(results_), ElementsAre());
}

TEST_F(MutationRecordTest, ReadsWhatWasWrittenInOrder) {
  add_to_mutation_record(results_, {score("b", "par", 7), score("a", "textbook", 8)});
  EXPECT_THAT(read_mutation_record(results_),
              ElementsAre(score("a", "textbook", 8), score("b", "par", 7)));
}

TEST_F(MutationRecordTest, ReplacesTheSameAnswersAlone) {
  add_to_mutation_record(results_, {score("a", "par", 1), score("a", "textbook", 2)});
  add_to_mutation_record(results_, {score("a", "textbook", 3)});
  EXPECT_THAT(read_mutation_record(results_),
              ElementsAre(score("a", "par", 1), score("a", "textbook", 3)));
}

TEST_F(MutationRecordTest, RefusesAnythingElse) {
  add_to_mutation_record(results_, {score("a", "par", 1)});
  const std::filesystem::path file = mutation_record_path(results_);
  const std::string good = read_file(file);
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write_file_atomically(file, text);
    return testing::error_of([&] { read_mutation_record(results_); });
  };
  EXPECT_THAT(error_with("\"killed\": 1", "\"killed\": -1"),
              AllOf(HasSubstr("mutants.json: at /scores/0/killed"), HasSubstr("--record")));
  EXPECT_THAT(error_with("\"of\": \"par\",", ""), HasSubstr("/scores/0"));
  EXPECT_THAT(error_with("\"schema\": 3", "\"schema\": 2"), HasSubstr("another version"));
  write_file_atomically(file, "{");
  EXPECT_THAT(testing::error_of([&] { read_mutation_record(results_); }),
              HasSubstr("mutants.json"));
}

}  // namespace
}  // namespace assay::store
