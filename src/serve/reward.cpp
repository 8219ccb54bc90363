#include "serve/reward.h"

#include <algorithm>

namespace assay::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kForCompiling = 0.1, kForCorrectness = 0.6, kForSpeed = 0.3;

struct Counted {
  int passed = 0, of = 0;
};

Counted required_cases(const Json& grade) {
  Counted all;
  for (const char* group : {"core", "edge", "trap"}) {
    const Json& counted = grade.at("passed").at(group);
    all.passed += counted.at("passed").get<int>();
    all.of += counted.at("asked").get<int>();
  }
  return all;
}

Json dimension_shares(const Json& grade) {
  Json shares = Json::object();
  for (const auto& [name, dimension] : grade.at("dimensions").items()) {
    const Json& points = dimension.at("points");
    const double most = dimension.at("max");
    shares[name] = points.is_null() || most <= 0
                       ? Json(nullptr)
                       : Json(std::clamp(points.get<double>() / most, 0.0, 1.0));
  }
  return shares;
}

}  // namespace

Json reward_of(const Json& grade) {
  const bool compiled = grade.at("compiled");
  Counted cases = required_cases(grade);
  // Capped: some case failed that the counts leave out, such as a timed one with wrong outputs.
  if (cases.passed == cases.of && grade.at("capped").get<bool>()) ++cases.of;
  const double correctness = cases.of == 0 ? 0 : static_cast<double>(cases.passed) / cases.of;
  const bool right = compiled && cases.of > 0 && cases.passed == cases.of;
  const Json shares = dimension_shares(grade);
  const double speed = shares.contains("performance") && shares["performance"].is_number()
                           ? shares["performance"].get<double>()
                           : 0;
  const double shaped = (compiled ? kForCompiling : 0) + kForCorrectness * correctness +
                        (right ? kForSpeed * speed : 0);
  return {{"compiled", compiled ? 1 : 0},
          {"correctness", correctness},
          {"right", right},
          {"findings", grade.at("findings").size()},
          {"dimensions", shares},
          {"log_speed_over_naive", grade.at("log_speed_over_naive")},
          {"log_speed_over_par", grade.at("log_speed_over_par")},
          {"shaped", shaped}};
}

}  // namespace assay::serve
