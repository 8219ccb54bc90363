// libFuzzer target of requests to `assay serve`: any body is refused with a status and a readable
// reason, or is a request that can be graded and whose task survives a restart.
#include <algorithm>
#include <filesystem>
#include <vector>

#include "fuzz/promises.h"
#include "serve/api_error.h"
#include "serve/grade_request.h"
#include "serve/limits.h"
#include "serve/task.h"
#include "spec/spec.h"
#include "support/paths.h"

namespace {

using namespace assay;

const std::vector<ChallengeSpec>& challenges() {
  static const std::vector<ChallengeSpec> all = [] {
    std::vector<ChallengeSpec> found;
    const std::filesystem::path folder =
        std::filesystem::path(testing::source_dir()) / "challenges";
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (std::filesystem::exists(entry.path() / "spec.json"))
        found.push_back(load_spec(entry.path()));
    return found;
  }();
  return all;
}

std::string key_of(const serve::GradeRequest& request) {
  const auto& all = challenges();
  const auto spec = std::ranges::find(all, request.answer.challenge, &ChallengeSpec::name);
  fuzz::require(spec != all.end(), "a request is of a challenge that there is");
  return serve::cache_key(request, *spec, "grader");
}

void check_taken(const serve::Json& body, const serve::GradeRequest& request) {
  fuzz::require(request.priority >= 0 && request.priority <= serve::kHighestPriority,
                "priorities have bounds");
  fuzz::require(request.client.size() <= serve::kLongestClientName, "names of clients have bounds");
  fuzz::require_safe(request.client, "names of clients are plain text");
  fuzz::require(!request.known_by.empty(), "it is told how the answer was found");
  fuzz::require(!request.answer.sources.empty() || !request.answer.no_answer.empty() ||
                    !request.answer.rejected.empty(),
                "an answer has sources, or a reason why there are none");

  serve::Task task;
  task.id = "0123456789abcdef0123456789abcdef";
  task.challenge = request.answer.challenge;
  task.request = body;
  const std::string stored = serve::to_json(task).dump();
  const serve::Task again = serve::task_from(serve::Json::parse(stored), "f");
  fuzz::require(serve::to_json(again).dump() == stored, "a task survives a restart", stored);
  fuzz::require(key_of(serve::read_request(again.request, challenges())) == key_of(request),
                "what is read again asks for the same", stored);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const serve::Json body = serve::parse_body(fuzz::text_of(data, size));
    check_taken(body, serve::read_request(body, challenges()));
  } catch (const serve::ApiError& refused) {
    fuzz::require(refused.status >= 400 && refused.status < 500, "what is refused is the client's");
    fuzz::require(!refused.code.empty(), "refusals have a code");
    fuzz::require(refused.what()[0] != '\0', "refusals have a reason");
    fuzz::require_safe(refused.what(), "reasons are plain text");
  }
  return 0;
}
