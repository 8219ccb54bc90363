// libFuzzer target of spec.json: any text is refused, or is a spec that grading can use.
#include <cmath>

#include "fuzz/promises.h"
#include "grade/grade.h"
#include "spec/spec.h"

namespace {

using namespace assay;

void check(const ChallengeSpec& spec) {
  for (const CaseSpec& c : spec.cases) {
    fuzz::require(find_case(spec, c.name) == &c, "cases have unique names");
    fuzz::require(std::isfinite(c.time_limit_s), "time limits are finite");
    fuzz::require(std::isfinite(c.weight), "weights are finite");
  }
  for (const Device device : {Device::cpu, Device::sim}) {
    CellResult cell;
    cell.key.device = device;
    const Score score = grade(spec_for(device, spec), cell);
    fuzz::require(!score.total || std::isfinite(*score.total), "totals are numbers");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepts([&] { check(parse_spec(fuzz::text_of(data, size), "spec.json")); });
  return 0;
}
