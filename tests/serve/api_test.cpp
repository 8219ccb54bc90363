#include "serve/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/http_server.h"
#include "serve/limits.h"
#include "serve/service_fixture.h"

namespace assay::serve {
namespace {

using ::testing::HasSubstr;
using testing::request_for;

constexpr const char* kToken = "a-token-of-some-length";

class ApiTest : public ::testing::Test {
 protected:
  static HttpRequest get(const std::string& path) { return {.method = "GET", .path = path}; }
  static HttpRequest post(const std::string& path, const Json& body) {
    return {.method = "POST",
            .path = path,
            .content_type = "application/json",
            .body = body.dump(),
            .address = "127.0.0.1"};
  }
  // The status and the error code.
  std::string refused(const HttpRequest& request) {
    const HttpAnswer answer = api_.answer(request);
    const Json error = Json::parse(answer.body).at("error");
    EXPECT_FALSE(error.at("message").get<std::string>().empty());
    return std::to_string(answer.status) + " " + error.at("code").get<std::string>();
  }

  assay::testing::TemporaryFolder folder_;
  testing::RunningService running_{folder_.path, {.most_queued = 3}};
  Api api_{running_.service, running_.metrics, {{}, "1", "c"}};
};

TEST_F(ApiTest, FromARequestToItsResult) {
  const HttpAnswer taken = api_.answer(post("/v1/grade", request_for("int x;")));
  EXPECT_EQ(taken.status, 202);
  const std::string id = Json::parse(taken.body)["id"];
  EXPECT_EQ(taken.headers.at("Location"), "/v1/tasks/" + id);
  HttpRequest poll = get("/v1/tasks/" + id);
  poll.query["wait"] = "60";
  const HttpAnswer ended = api_.answer(poll);
  EXPECT_EQ(ended.status, 200);
  EXPECT_EQ(Json::parse(ended.body)["status"], "done");
}

TEST_F(ApiTest, ABatchIsAnsweredInItsOrder) {
  const HttpAnswer taken = api_.answer(post(
      "/v1/batch", {{"tasks", Json::array({request_for("int x;", "a"), request_for("y", "b")})}}));
  EXPECT_EQ(taken.status, 202);
  const Json tasks = Json::parse(taken.body)["tasks"];
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0]["client"], "a");
  EXPECT_EQ(tasks[1]["client"], "b");
}

TEST_F(ApiTest, EveryRefusalIsJsonWithItsStatus) {
  EXPECT_EQ(refused(get("/v2")), "404 unknown_path");
  EXPECT_EQ(refused(get("/v1/grade")), "405 wrong_method");
  EXPECT_EQ(refused(post("/v1/health", {})), "405 wrong_method");
  EXPECT_EQ(refused(post("/v1/tasks/x", {})), "405 wrong_method");
  EXPECT_EQ(refused(get("/v1/tasks/x")), "404 unknown_task");
  EXPECT_EQ(refused(post("/v1/grade", Json::object())), "422 invalid_request");
  EXPECT_EQ(refused(post("/v1/grade", {{"challenge", "no"}})), "404 unknown_challenge");
  EXPECT_EQ(refused(post("/v1/batch", Json::array())), "422 invalid_request");
  EXPECT_EQ(refused(post("/v1/batch", {{"tasks", Json::array()}})), "422 invalid_request");
  Json many = Json::array();
  for (std::size_t i = 0; i <= kMostInBatch; ++i) many.push_back(Json::object());
  EXPECT_EQ(refused(post("/v1/batch", {{"tasks", many}})), "422 invalid_request");
  HttpRequest torn = post("/v1/grade", {});
  torn.body = "{";
  EXPECT_EQ(refused(torn), "400 invalid_json");
  HttpRequest form = post("/v1/grade", request_for("int x;"));
  form.content_type = "text/plain";
  EXPECT_EQ(refused(form), "415 not_json");
  for (const char* wait : {"-1", "61", "soon", "1s", "nan"}) {
    HttpRequest poll = get("/v1/tasks/x");
    poll.query["wait"] = wait;
    EXPECT_EQ(refused(poll), "422 invalid_request") << wait;
  }
}

TEST_F(ApiTest, AFullQueueSaysWhenToComeAgain) {
  running_.grade.hold();
  HttpAnswer answer;
  for (int i = 0; i < 5; ++i)
    answer = api_.answer(post("/v1/grade", request_for("int x" + std::to_string(i) + ";")));
  EXPECT_EQ(answer.status, 429);
  EXPECT_GT(std::stoi(answer.headers.at("Retry-After")), 0);
  running_.grade.let_go();
}

TEST_F(ApiTest, HealthMetricsAndTheDocument) {
  const Json health = Json::parse(api_.answer(get("/v1/health")).body);
  EXPECT_EQ(health["status"], "ok");
  EXPECT_EQ(health["challenges"], Json::array({"copying"}));
  EXPECT_EQ(health["languages"], Json::array({"cpp"}));
  EXPECT_EQ(health["version"], "1");
  const HttpAnswer metrics = api_.answer(get("/metrics"));
  EXPECT_THAT(metrics.content_type, HasSubstr("text/plain"));
  EXPECT_THAT(metrics.body, HasSubstr("assay_serve_responses_total{code=\"200\"} 1\n"));
  EXPECT_EQ(Json::parse(api_.answer(get("/openapi.json")).body)["openapi"], "3.1.0");
  EXPECT_TRUE(Json::parse(api_.answer(get("/grade.schema.json")).body).contains("properties"));
}

TEST_F(ApiTest, CancellingAnswersWithTheTask) {
  running_.grade.hold();
  std::vector<std::string> ids;
  for (const char* source : {"int x;", "int y;"}) {
    ids.push_back(Json::parse(api_.answer(post("/v1/grade", request_for(source))).body)["id"]);
    running_.grade.wait_for_begun(1);
  }
  const HttpAnswer waiting = api_.answer({.method = "DELETE", .path = "/v1/tasks/" + ids[1]});
  EXPECT_EQ(waiting.status, 200);
  EXPECT_EQ(Json::parse(waiting.body)["status"], "cancelled");
  const HttpAnswer running = api_.answer({.method = "DELETE", .path = "/v1/tasks/" + ids[0]});
  EXPECT_EQ(running.status, 202);
  EXPECT_EQ(running_.ended(ids[0])["status"], "cancelled");
  EXPECT_EQ(refused({.method = "DELETE", .path = "/v1/tasks/" + ids[0]}), "409 has_ended");
}

TEST_F(ApiTest, WithTokensOnlyWhoBearsOneComesIn) {
  Api api(running_.service, running_.metrics, {{"another-token-here", kToken}, "1", "c"});
  const auto entry = [&](const std::string& path, const std::string& authorization) {
    const auto refused =
        api.refuse_entry({.method = "GET", .path = path, .authorization = authorization});
    return refused ? refused->status : 200;
  };
  EXPECT_EQ(entry("/v1/grade", ""), 401);
  EXPECT_EQ(entry("/v1/grade", "Bearer wrong"), 401);
  EXPECT_EQ(entry("/v1/grade", kToken), 401);
  EXPECT_EQ(entry("/metrics", ""), 401);
  EXPECT_EQ(entry("/nowhere", ""), 401);
  EXPECT_EQ(entry("/v1/grade", std::string("Bearer ") + kToken), 200);
  EXPECT_EQ(entry("/v1/health", ""), 200);
}

// A page whose host name was made to resolve to this machine sends that name.
TEST_F(ApiTest, WithoutTokensOnlyWhoNamesThisMachineComesIn) {
  const auto entry = [&](const std::string& path, const std::string& host) {
    const auto refused = api_.refuse_entry({.method = "GET", .path = path, .host = host});
    return refused ? refused->status : 200;
  };
  for (const char* host : {"localhost", "localhost:8077", "127.0.0.1:8077", "[::1]:8077", "[::1]"})
    EXPECT_EQ(entry("/v1/grade", host), 200) << host;
  for (const char* host : {"example.org:8077", "127.0.0.1.example.org", "10.0.0.1:8077", "[", ""})
    EXPECT_EQ(entry("/v1/grade", host), 421) << host;
  EXPECT_EQ(entry("/v1/health", "example.org"), 200);
}

}  // namespace
}  // namespace assay::serve
