// A challenge that does nothing. Each test defines what it needs on top.
#pragma once

#include <memory>
#include <string>

#include "assay/challenge.h"

namespace assay {

class BareChallenge : public Challenge {
 public:
  CasePlan plan(const CaseSpec&) const override { return {}; }
  void fill(const CaseSpec&, const CasePlan&, const Seeds&, BufferViews) const override {}
  std::unique_ptr<Reference> reference(const CaseSpec&, const CasePlan&,
                                       BufferViews) const override {
    return nullptr;
  }
  CheckResult check(const CaseSpec&, const CasePlan&, const Reference&, BufferViews,
                    const CallbackServer*) const override {
    return {};
  }
  std::string shape(const CaseSpec&) const override { return ""; }
};

}  // namespace assay
