// Wraps a challenge's server in limits, so that no submission can use up the harness's time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "assay/challenge.h"
#include "processes/protocol_violation.h"

namespace assay::processes {

// Callbacks allowed in one run of a case. No correct answer comes near the limit: the longest
// generation makes a few hundred.
inline constexpr std::int64_t kMostCallbacks = 20'000;
inline constexpr double kCallbackSeconds = 10;  // or twice the case's time limit

class BoundedServer final : public CallbackServer {
 public:
  // `seconds`: limit on the total time spent answering. `now`: seconds on a monotonic clock.
  BoundedServer(CallbackServer& inner, double seconds, std::function<double()> now)
      : inner_(inner), seconds_(seconds), now_(std::move(now)) {}

  std::int32_t serve(std::uint32_t kind, std::span<const std::byte> request,
                     std::span<std::byte> response) override;
  // Why no further request is answered, once a limit was exceeded.
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
