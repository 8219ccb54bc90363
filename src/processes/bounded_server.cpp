#include "processes/bounded_server.h"

#include <algorithm>

#include "assay/abi.h"

namespace assay::processes {

std::int32_t BoundedServer::serve(std::uint32_t kind, std::span<const std::byte> request,
                                  std::span<std::byte> response) {
  if (!given_up_ && ++calls_ > kMostCallbacks)
    given_up_ = violation<Violation::many_callbacks>(kMostCallbacks);
  if (given_up_) return ASSAY_EINTERNAL;
  const double begin = now_();
  const std::int32_t status = inner_.serve(kind, request, response);
  spent_ += now_() - begin;
  if (spent_ > seconds_) given_up_ = violation<Violation::slow_callbacks>(seconds_);
  return status;
}

double callback_seconds(const CaseSpec& spec) {
  return std::max(kCallbackSeconds, 2 * spec.time_limit_s);
}

}  // namespace assay::processes
