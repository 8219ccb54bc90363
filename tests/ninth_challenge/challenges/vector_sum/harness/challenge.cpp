#include "assay/challenge.h"

#include <fmt/format.h>

#include <cmath>

#include "../worker/call.h"
#include "assay/dtype.h"
#include "assay/random.h"
#include "assay/tolerance.h"

namespace assay::vector_sum {
namespace {

struct Sum final : Reference {
  double exact = 0;
  float plain = 0;  // by a plain fp32 implementation, in blocks of 64
};

}  // namespace

class VectorSum final : public Challenge {
 public:
  CasePlan plan(const CaseSpec& spec) const override {
    const std::int64_t n = spec.params.at("n");
    const auto& wrong = spec.params.value("override", nlohmann::json::object());
    CasePlan plan;
    plan.set_params(Params{{sizeof(vs_params), wrong.value("n", n)}});
    plan.aligned = spec.group == CaseGroup::timed;
    plan.add(kX, {.name = "x", .dtype = Dtype::f32, .shape = {n}});
    plan.add(kSum, {.name = "sum", .dtype = Dtype::f32, .shape = {1}, .role = Role::output});
    return plan;
  }

  void fill(const CaseSpec& spec, const CasePlan&, const Seeds& seeds,
            BufferViews buffers) const override {
    fill_uniform(buffers[kX].span<float>(), seeds.inputs, 0, 1);
    // Beside a large first term the others are lost in one fp32 sum, whatever the seed.
    if (const float head = spec.params.value("head", 0.0f); head != 0)
      buffers[kX].span<float>()[0] = head;
  }

  std::unique_ptr<Reference> reference(const CaseSpec&, const CasePlan&,
                                       BufferViews buffers) const override {
    auto sum = std::make_unique<Sum>();
    const auto x = buffers[kX].span<float>();
    for (std::size_t first = 0; first < x.size(); first += 64) {
      float block = 0;
      for (const float v : x.subspan(first, std::min<std::size_t>(64, x.size() - first))) {
        sum->exact += static_cast<double>(v);
        block += v;
      }
      sum->plain += block;
    }
    return sum;
  }

  CheckResult check(const CaseSpec& spec, const CasePlan&, const Reference& reference,
                    BufferViews buffers, const CallbackServer*) const override {
    CheckResult result;
    if (spec.expect_status != ASSAY_OK) return result;
    const auto& sum = static_cast<const Sum&>(reference);
    const double got[] = {static_cast<double>(*buffers[kSum].as<float>())};
    const double expected[] = {sum.exact}, plain[] = {static_cast<double>(sum.plain)};
    RowJudge judge("sum", {4.0, 4 * kEps32});
    judge.row(0, got, expected, plain, expected);  // no term is negative
    judge.add_to(result);
    return result;
  }

  std::string shape(const CaseSpec& spec) const override {
    return fmt::format("n={}", spec.params.at("n").get<std::int64_t>());
  }
};

}  // namespace assay::vector_sum

ASSAY_CHALLENGE(vector_sum, vector_sum::VectorSum)
