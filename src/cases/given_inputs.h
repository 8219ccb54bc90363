// A challenge whose inputs come from a recorded call instead of a seed. Plan, reference and check
// are those of the underlying challenge.
#pragma once

#include <memory>
#include <optional>

#include "assay/challenge.h"

namespace assay::cases {

class GivenInputs final : public Challenge {
 public:
  // The challenge must outlive it.
  explicit GivenInputs(const Challenge& of) : of_(of) {}

  // The case that makes this call, or nothing if it cannot be judged. From then on fill() uses this
  // call's inputs, so the call must live that long.
  std::optional<CaseSpec> take(const RecordedCall&);

  CasePlan plan(const CaseSpec& spec) const override { return of_.plan(spec); }
  void fill(const CaseSpec& spec, const CasePlan& plan, const Seeds&,
            BufferViews buffers) const override {
    fill_and_adopt(spec, plan, buffers);
  }
  std::unique_ptr<Reference> reference(const CaseSpec& spec, const CasePlan& plan,
                                       BufferViews buffers) const override {
    return of_.reference(spec, plan, buffers);
  }
  CheckResult check(const CaseSpec& spec, const CasePlan& plan, const Reference& reference,
                    BufferViews buffers, const CallbackServer* server) const override {
    return of_.check(spec, plan, reference, buffers, server);
  }
  bool has_callbacks(const CaseSpec& spec) const override { return of_.has_callbacks(spec); }
  std::unique_ptr<CallbackServer> callbacks(const CaseSpec& spec, const CasePlan& plan,
                                            BufferViews buffers) const override {
    return of_.callbacks(spec, plan, buffers);
  }
  std::string shape(const CaseSpec& spec) const override { return of_.shape(spec); }

 private:
  bool is_legal(const CaseSpec&, const CasePlan&) const;
  bool fill_and_adopt(const CaseSpec&, const CasePlan&, BufferViews) const;

  const Challenge& of_;
  const RecordedCall* call_ = nullptr;
};

// A short description of the inputs: each array with its first values.
std::string describe_inputs(const CasePlan&, const RecordedCall&);

}  // namespace assay::cases
