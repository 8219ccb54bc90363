#include "ask/retry.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace assay::ask {

bool is_passing(const Fault& fault, bool was_reached) {
  switch (fault.kind) {
    case Fault::Kind::unreachable: return was_reached;
    case Fault::Kind::timed_out:
    case Fault::Kind::cut:
    case Fault::Kind::damaged: return true;
    case Fault::Kind::status:
      return fault.status >= 500 || fault.status == 408 || fault.status == 409 ||
             fault.status == 425 || fault.status == 429;
    case Fault::Kind::insecure:
    case Fault::Kind::refused: return false;
  }
  return false;
}

bool concerns_all(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::unreachable:
    case Fault::Kind::insecure: return true;
    case Fault::Kind::status:
      return fault.status == 401 || fault.status == 402 || fault.status == 403 ||
             fault.status == 404 || fault.status == 405 || (fault.status / 100 == 3);
    default: return false;
  }
}

std::optional<double> wait_before_retry(const RetryPolicy& policy, const Fault& fault,
                                        unsigned failures, bool was_reached, double jitter) {
  if (failures > policy.retries || !is_passing(fault, was_reached)) return {};
  const double doubled =
      policy.first_wait * std::pow(2.0, static_cast<double>(std::min(failures, 40U)) - 1);
  const double wait = std::min(doubled, policy.longest_wait) * (0.5 + 0.5 * jitter);
  if (!fault.retry_after) return wait;
  if (*fault.retry_after > policy.longest_asked) return {};
  return std::max(wait, *fault.retry_after);
}

std::optional<double> retry_after_seconds(const std::string& header, std::time_t now) {
  if (header.empty()) return {};
  double seconds = 0;
  const char* end = header.data() + header.size();
  const auto [stop, error] = std::from_chars(header.data(), end, seconds);
  if (error == std::errc() && stop == end) {
    if (!(seconds >= 0)) return {};
    return seconds;
  }
  std::tm date{};
  const char* rest = ::strptime(header.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (rest == nullptr || *rest != '\0') return {};
  return std::max(0.0, std::difftime(::timegm(&date), now));
}

}  // namespace assay::ask
