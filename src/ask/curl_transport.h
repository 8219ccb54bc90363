// The real network, through libcurl: HTTP and HTTPS, with proxies and certificates from curl's
// environment variables (https_proxy, no_proxy, SSL_CERT_FILE ...). Redirects are not followed,
// because requests contain a key.
#pragma once

#include <string>

#include "ask/http.h"

namespace assay::ask {

class CurlTransport : public Transport {
 public:
  // `agent` is the header User-Agent. Construct this while the process has only one thread.
  explicit CurlTransport(std::string agent);

  HttpResponse post(const HttpRequest&, const OnBytes&) override;

 private:
  std::string agent_;
};

}  // namespace assay::ask
