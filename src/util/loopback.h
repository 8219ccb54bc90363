// Which names and addresses are this machine's own.
#pragma once

#include <string>

namespace assay {

// Of "host:8077", "[::1]:8077" or a host alone: "host", "::1".
std::string host_of(const std::string& authority);

// Whether nobody beyond this machine can reach that address, or answers to that name: localhost and
// the names below it (RFC 6761), 127.0.0.0/8, ::1.
bool is_loopback(const std::string& host);

}  // namespace assay
