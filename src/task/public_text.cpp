#include "task/public_text.h"

#include <fmt/format.h>

#include "draw/space.h"

namespace assay::task {

std::string public_text(const ChallengeSpec& spec, const Challenge& challenge,
                        const PublicCases& published, Language language) {
  std::string text = fmt::format(
      "## Public cases\n\n"
      "These cases are public. Where assay is at hand, this compiles an answer and runs it on "
      "them, "
      "isolated:\n`assay check {} --challenge {}`. It tells the first wrong value of each case "
      "that "
      "is wrong,\nand an indicative speed. They earn nothing: a grading has other cases, of other "
      "shapes, with inputs from\nother seeds.\n\n"
      "| case | shape | what it is |\n|---|---|---|\n",
      main_file(language), spec.name);
  for (const CaseSpec& c : spec.cases) {
    const CaseSpec whole = c.drawn ? draw::draw_case(challenge, spec, c, published.seed).spec : c;
    std::string about = published.about.at(c.name);
    if (!c.capability.empty()) about += fmt::format(" (`{}`)", c.capability);
    text += fmt::format("| `{}` | {} | {} |\n", c.name, challenge.shape(whole), about);
  }
  return text;
}

}  // namespace assay::task
