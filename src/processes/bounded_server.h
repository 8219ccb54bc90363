// A challenge's server behind limits: however a submission asks, the harness's time is bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "assay/challenge.h"
#include "processes/protocol_violation.h"

namespace assay::processes {

// Of one run of a case. No right answer comes near: the longest generation asks some hundreds of
// times.
inline constexpr std::int64_t kMostCallbacks = 20'000;
inline constexpr double kCallbackSeconds = 10;  // or twice the case's time limit

class BoundedServer final : public CallbackServer {
 public:
  // `seconds`: of answering, in all. `now`: seconds on a clock that only goes forward.
  BoundedServer(CallbackServer& inner, double seconds, std::function<double()> now)
      : inner_(inner), seconds_(seconds), now_(std::move(now)) {}

  std::int32_t serve(std::uint32_t kind, std::span<const std::byte> request,
                     std::span<std::byte> response) override;
  // Why no further request is answered, once that is so.
  const std::optional<ProtocolViolation>& given_up() const { return given_up_; }

 private:
  CallbackServer& inner_;
  double seconds_, spent_ = 0;
  std::function<double()> now_;
  std::int64_t calls_ = 0;
  std::optional<ProtocolViolation> given_up_;
};

double callback_seconds(const CaseSpec&);

}  // namespace assay::processes
