// A refused request, as the client sees it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace assay::serve {

// Becomes {"error": {"code": ..., "message": ...}} with this HTTP status.
class ApiError : public std::runtime_error {
 public:
  ApiError(int http_status, std::string short_code, const std::string& message, int retry_s = 0)
      : std::runtime_error(message),
        status(http_status),
        code(std::move(short_code)),
        retry_after_s(retry_s) {}

  int status;
  std::string code;   // for programs: "queue_full"
  int retry_after_s;  // 0: retrying is useless
};

}  // namespace assay::serve
