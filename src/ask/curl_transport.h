// The real network, by libcurl: HTTP and HTTPS, proxies and certificates as curl's environment
// variables say (https_proxy, no_proxy, SSL_CERT_FILE ...). Redirections are not followed: what
// goes out holds a key.
#pragma once

#include <string>

#include "ask/http.h"

namespace assay::ask {

class CurlTransport : public Transport {
 public:
  // `agent` is the header User-Agent. To be made while the process has one thread.
  explicit CurlTransport(std::string agent);

  HttpResponse post(const HttpRequest&, const OnBytes&) override;

 private:
  std::string agent_;
};

}  // namespace assay::ask
