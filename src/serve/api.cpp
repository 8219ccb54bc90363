#include "serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "serve/api_error.h"
#include "serve/limits.h"
#include "util/loopback.h"
#include "util/sha256.h"
#include "util/text.h"

namespace assay {
extern const std::string_view kOpenApi;      // src/serve/openapi.json
extern const std::string_view kGradeSchema;  // challenges/grade.schema.json
}  // namespace assay

namespace assay::serve {
namespace {

constexpr std::string_view kTasks = "/v1/tasks/";

HttpAnswer json_answer(int status, const Json& json) {
  return {.status = status,
          .body = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

// A browser page cannot send this type to another host without a preflight request, which is
// refused. So no stranger's page can make a browser next to the server submit work.
void require_json(const HttpRequest& request) {
  const std::string_view type = request.content_type;
  if (type == "application/json" || type.starts_with("application/json;")) return;
  throw ApiError(415, "not_json", "send the header Content-Type: application/json");
}

double seconds_asked(const HttpRequest& request) {
  const auto found = request.query.find("wait");
  if (found == request.query.end()) return 0;
  const std::string& text = found->second;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(seconds >= 0 && seconds <= kLongestWait)) {
    throw ApiError(422, "invalid_request",
                   fmt::format("wait: expected seconds from 0 to {}", kLongestWait));
  }
  return seconds;
}

[[noreturn]] void wrong_method(const char* allowed) {
  throw ApiError(405, "wrong_method", fmt::format("this path takes {}", allowed));
}

void require_method(const HttpRequest& request, const char* method) {
  if (request.method != method) wrong_method(method);
}

// Open to anyone: for liveness probes, and for clients that look up the interface.
bool is_open(const std::string& path) {
  return path == "/v1/health" || path == "/openapi.json" || path == "/grade.schema.json";
}

}  // namespace

HttpAnswer refusal(int status, const std::string& code, const std::string& message) {
  return json_answer(status, {{"error", {{"code", code}, {"message", message}}}});
}

Api::Api(Service& service, Metrics& metrics, Settings settings)
    : service_(service), metrics_(metrics), settings_(std::move(settings)) {
  for (const std::string& token : settings_.tokens) hashes_.push_back(sha256_hex(token));
}

// Compares hashes, so that timing reveals nothing about a token.
std::optional<std::size_t> Api::token_of(const std::string& authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (!authorization.starts_with(kScheme)) return std::nullopt;
  const std::string hash = sha256_hex(authorization.substr(kScheme.size()));
  const auto found = std::ranges::find(hashes_, hash);
  if (found == hashes_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - hashes_.begin());
}

std::optional<HttpAnswer> Api::refuse_entry(const HttpRequest& request) {
  if (is_open(request.path)) return std::nullopt;
  HttpAnswer refused;
  if (hashes_.empty()) {
    if (is_loopback(host_of(request.host))) return std::nullopt;
    refused = refusal(421, "wrong_host", "without tokens this server answers to localhost alone");
  } else {
    if (token_of(request.authorization)) return std::nullopt;
    refused = refusal(401, "no_token", "send the header Authorization: Bearer TOKEN");
    refused.headers["WWW-Authenticate"] = "Bearer";
  }
  metrics_.answered(refused.status);
  return refused;
}

std::string Api::owner(const HttpRequest& request) const {
  const auto token = token_of(request.authorization);
  return hashes_.size() > 1 && token ? fmt::format("token {}", *token) : request.address;
}

HttpAnswer Api::answer(const HttpRequest& request) {
  HttpAnswer answer;
  try {
    answer = route(request);
  } catch (const ApiError& e) {
    answer = refusal(e.status, e.code, e.what());
    if (e.retry_after_s > 0) answer.headers["Retry-After"] = std::to_string(e.retry_after_s);
  } catch (const std::bad_alloc&) {
    answer = refusal(500, "fault", "out of memory");
  } catch (const std::exception& e) {
    answer = refusal(500, "fault", printable(e.what(), 3));
  }
  metrics_.answered(answer.status);
  return answer;
}

HttpAnswer Api::route(const HttpRequest& request) {
  const std::string& path = request.path;
  if (path == "/v1/grade") return grade(request);
  if (path == "/v1/batch") return batch(request);
  if (path.starts_with(kTasks)) return task(request, path.substr(kTasks.size()));
  if (path == "/v1/health") {
    require_method(request, "GET");
    return health();
  }
  if (path == "/metrics") {
    require_method(request, "GET");
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = service_.metrics()};
  }
  if (path == "/openapi.json") {
    require_method(request, "GET");
    return {.body = std::string(kOpenApi)};
  }
  if (path == "/grade.schema.json") {  // openapi.json refers to it
    require_method(request, "GET");
    return {.body = std::string(kGradeSchema)};
  }
  throw ApiError(
      404, "unknown_path",
      fmt::format("there is no {}: /openapi.json says what there is", printable(path, 1, 80)));
}

HttpAnswer Api::grade(const HttpRequest& request) {
  require_method(request, "POST");
  require_json(request);
  const std::string id = service_.submit({parse_body(request.body)}, owner(request)).front();
  HttpAnswer accepted = json_answer(202, service_.wait(id, 0));
  accepted.headers["Location"] = std::string(kTasks) + id;
  return accepted;
}

HttpAnswer Api::batch(const HttpRequest& request) {
  require_method(request, "POST");
  require_json(request);
  const Json body = parse_body(request.body);
  const bool formed = body.is_object() && body.size() == 1 && body.contains("tasks") &&
                      body["tasks"].is_array() && !body["tasks"].empty();
  if (!formed) throw ApiError(422, "invalid_request", "expected {\"tasks\": [...]}, not empty");
  if (body["tasks"].size() > kMostInBatch) {
    throw ApiError(422, "invalid_request",
                   fmt::format("a batch has at most {} tasks", kMostInBatch));
  }
  Json tasks = Json::array();
  for (const std::string& id : service_.submit(body["tasks"], owner(request)))
    tasks.push_back(service_.wait(id, 0));
  return json_answer(202, {{"tasks", tasks}});
}

HttpAnswer Api::task(const HttpRequest& request, const std::string& id) {
  if (request.method == "GET") return json_answer(200, service_.wait(id, seconds_asked(request)));
  if (request.method == "DELETE") {
    const Json task = service_.cancel(id);
    return json_answer(task.at("status") == "cancelled" ? 200 : 202, task);
  }
  wrong_method("GET or DELETE");
}

HttpAnswer Api::health() const {
  Json json = service_.health();
  json["version"] = settings_.version;
  json["commit"] = settings_.commit;
  return json_answer(200, json);
}

}  // namespace assay::serve
