// The HTTP interface without HTTP: a request in, an answer out. See docs/serving.md and
// openapi.json.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "serve/service.h"

namespace assay::serve {

struct HttpRequest {
  std::string method, path;  // path: without the query
  std::map<std::string, std::string> query{};
  std::string content_type{}, authorization{}, host{}, body{};
  std::string address{};  // who sent it
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json", body;
  std::map<std::string, std::string> headers{};
};

// {"error": {"code": ..., "message": ...}}
HttpAnswer refusal(int status, const std::string& code, const std::string& message);

// Thread-safe.
class Api {
 public:
  struct Settings {
    std::vector<std::string> tokens;  // any of them grants access; none: everyone may enter
    std::string version, commit;
  };

  Api(Service& service, Metrics& metrics, Settings settings);

  // Never throws. Waits as long as the client asked it to.
  HttpAnswer answer(const HttpRequest&);
  // Why a request may not even send its body: 401 if a token is needed; if none is, 421 if its Host
  // is not this machine, since then a foreign host name led a browser here. Absent if it may.
  // Anyone may ask whether the server is up and what it accepts.
  std::optional<HttpAnswer> refuse_entry(const HttpRequest&);

 private:
  HttpAnswer route(const HttpRequest&);
  HttpAnswer grade(const HttpRequest&);
  HttpAnswer batch(const HttpRequest&);
  HttpAnswer task(const HttpRequest&, const std::string& id);
  HttpAnswer health() const;
  // The client's identity in the queue's turns.
  std::string owner(const HttpRequest&) const;
  std::optional<std::size_t> token_of(const std::string& authorization) const;

  Service& service_;
  Metrics& metrics_;
  const Settings settings_;
  std::vector<std::string> hashes_;  // of the tokens
};

}  // namespace assay::serve
