#include "task/public_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/bare_challenge.h"

namespace assay::task {
namespace {

using ::testing::HasSubstr;

class Drawing final : public BareChallenge {
 public:
  std::string shape(const CaseSpec& c) const override { return "n=" + c.params.at("n").dump(); }
};

TEST(PublicTextTest, NamesEveryCaseWithItsShape) {
  ChallengeSpec spec;
  spec.name = "sample";
  spec.random.emplace();
  spec.random->axes = {{.name = "n", .choices = {41}}};
  PublicCases published;
  CaseSpec plain, more, drawn;
  plain.name = "public_plain";
  plain.params = {{"n", 3}};
  more.name = "public_more";
  more.params = {{"n", 4}};
  more.capability = "extra";
  drawn.name = "public_draw_1";
  drawn.drawn = true;
  spec.cases = published.cases = {plain, more, drawn};
  published.about = {
      {"public_plain", "plain"}, {"public_more", "more"}, {"public_draw_1", "drawn"}};
  const std::string text = public_text(spec, Drawing(), published, Language::cuda);
  EXPECT_THAT(text, HasSubstr("## Public cases\n"));
  EXPECT_THAT(text, HasSubstr("`assay check submission.cu --challenge sample`"));
  EXPECT_THAT(text, HasSubstr("| `public_plain` | n=3 | plain |\n"
                              "| `public_more` | n=4 | more (`extra`) |\n"
                              "| `public_draw_1` | n=41 | drawn |\n"));
}

}  // namespace
}  // namespace assay::task
