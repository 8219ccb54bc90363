// libFuzzer target of a judge's reply and of an opinion's file: all marks are there and in range,
// or a safe line says why there are none; an opinion that is read is written unchanged.
#include "fuzz/promises.h"
#include "judge/opinion.h"

namespace {

using namespace assay;

const judge::Rubric& rubric() {
  static const judge::Rubric rubric = judge::parse_rubric(
      R"({"schema": 1, "name": "r", "version": "1", "criteria": [
          {"key": "a", "title": "A", "asks": "?", "weight": 1},
          {"key": "b", "title": "B", "asks": "?", "weight": 2}]})",
      "rubric");
  return rubric;
}

bool in_range(double mark) { return mark >= judge::kLowestMark && mark <= judge::kHighestMark; }

void check_marks(const std::string& reply) {
  const judge::ReadMarks read = judge::read_marks(reply, rubric());
  if (!read.problem.empty()) {
    fuzz::require(read.marks.empty(), "a problem comes without marks");
    fuzz::require_safe(read.problem, "a problem is safe to print");
    fuzz::require(read.problem.find('\n') == std::string::npos, "a problem is one line");
    return;
  }
  fuzz::require(read.marks.size() == rubric().criteria.size(), "each criterion has a mark");
  for (const judge::Mark& m : read.marks) {
    fuzz::require(in_range(m.value), "a mark is in its range", m.key);
    fuzz::require(!m.reason.empty(), "a mark has a reason", m.key);
  }
  fuzz::require(in_range(judge::overall(read.marks, rubric())), "so is the mean");
}

void check_opinion(const std::string& text) {
  judge::Opinion opinion;
  if (!fuzz::accepts([&] { opinion = judge::parse_opinion(text, "file"); })) return;
  const std::string written = judge::opinion_text(opinion);
  fuzz::require(judge::opinion_text(judge::parse_opinion(written, "again")) == written,
                "an opinion survives its file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::text_of(data, size);
  check_marks(text);
  check_opinion(text);
  return 0;
}
