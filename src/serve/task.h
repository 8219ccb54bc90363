// An answer to be graded, from its arrival to its result.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace assay::serve {

using Json = nlohmann::ordered_json;

enum class TaskStatus : std::uint8_t {
  queued,
  running,
  done,       // there is a result
  failed,     // a fault of the harness: not graded, and not the answer's fault
  cancelled,  // by its client
  expired,    // its deadline passed
  lost,       // the server was killed while it ran: send it again
};

const char* to_string(TaskStatus);
std::optional<TaskStatus> task_status_from(std::string_view);

struct Task {
  std::string id{};          // 32 hexadecimal digits, unguessable
  std::uint64_t number = 0;  // in order of arrival
  TaskStatus status = TaskStatus::queued;
  std::string owner{};   // who takes turns with others: token or address, and the client's name
  std::string client{};  // the name that the client gave itself
  std::string challenge{}, language{};
  int priority = 0;
  std::string created_at{}, finished_at{};  // UTC
  std::int64_t deadline = 0;                // seconds since 1970, 0 for none
  std::string key{};    // in the cache of results; "" if the result may not be shared
  bool cached = false;  // the result is that of an earlier task
  std::string why{};    // why it failed or was lost
  Json request{};       // as received; null once the task has ended
  Json result{};        // what `assay grade --json` prints; null if there is none
};

bool has_ended(TaskStatus);

// As stored in the folder of tasks.
Json to_json(const Task&);
// Throws Error if it is not what to_json() produces; `file` names it.
Task task_from(const Json&, const std::string& file);

// What clients see. `stage`: what is running now, or "".
Json envelope(const Task&, const std::string& stage);

}  // namespace assay::serve
