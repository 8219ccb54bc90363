// Which names and addresses are this machine's own.
#pragma once

#include <string>

namespace assay {

// The host of "host:8077", "[::1]:8077" or of a host alone: "host", "::1".
std::string host_of(const std::string& authority);

// Whether the name or address can only be this machine: localhost and the names below it (RFC
// 6761), 127.0.0.0/8, ::1.
bool is_loopback(const std::string& host);

}  // namespace assay
