#include "serve/task.h"

#include <fmt/format.h>

#include <array>

#include "assay/error.h"
#include "serve/reward.h"

namespace assay::serve {
namespace {

constexpr int kSchema = 1;
constexpr std::array kStatuses{TaskStatus::queued, TaskStatus::running,   TaskStatus::done,
                               TaskStatus::failed, TaskStatus::cancelled, TaskStatus::expired,
                               TaskStatus::lost};

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

const char* to_string(TaskStatus status) {
  switch (status) {
    case TaskStatus::queued: return "queued";
    case TaskStatus::running: return "running";
    case TaskStatus::done: return "done";
    case TaskStatus::failed: return "failed";
    case TaskStatus::cancelled: return "cancelled";
    case TaskStatus::expired: return "expired";
    case TaskStatus::lost: return "lost";
  }
  return "?";
}

std::optional<TaskStatus> task_status_from(std::string_view name) {
  for (const TaskStatus status : kStatuses) {
    if (name == to_string(status)) return status;
  }
  return std::nullopt;
}

bool has_ended(TaskStatus status) {
  return status != TaskStatus::queued && status != TaskStatus::running;
}

Json to_json(const Task& task) {
  return {{"schema", kSchema},
          {"id", task.id},
          {"number", task.number},
          {"status", to_string(task.status)},
          {"owner", task.owner},
          {"client", task.client},
          {"challenge", task.challenge},
          {"language", task.language},
          {"priority", task.priority},
          {"created_at", task.created_at},
          {"finished_at", task.finished_at},
          {"deadline", task.deadline},
          {"key", task.key},
          {"cached", task.cached},
          {"why", task.why},
          {"request", task.request},
          {"result", task.result}};
}

Task task_from(const Json& json, const std::string& file) {
  try {
    if (json.at("schema") != kSchema)
      throw Error(fmt::format("{}: of another version of assay: name another --state", file));
    const auto status = task_status_from(json.at("status").get<std::string>());
    if (!status) throw Error(fmt::format("{}: unknown status", file));
    return {.id = json.at("id"),
            .number = json.at("number"),
            .status = *status,
            .owner = json.at("owner"),
            .client = json.at("client"),
            .challenge = json.at("challenge"),
            .language = json.at("language"),
            .priority = json.at("priority"),
            .created_at = json.at("created_at"),
            .finished_at = json.at("finished_at"),
            .deadline = json.at("deadline"),
            .key = json.at("key"),
            .cached = json.at("cached"),
            .why = json.at("why"),
            .request = json.at("request"),
            .result = json.at("result")};
  } catch (const Json::exception& e) {
    throw Error(fmt::format("{}: no task of assay's ({}): move the file away", file, e.what()));
  }
}

Json envelope(const Task& task, const std::string& stage) {
  return {{"id", task.id},
          {"status", to_string(task.status)},
          {"client", text_or_null(task.client)},
          {"challenge", task.challenge},
          {"language", task.language},
          {"priority", task.priority},
          {"created_at", task.created_at},
          {"finished_at", text_or_null(task.finished_at)},
          {"stage", text_or_null(stage)},
          {"cached", task.cached},
          {"why", text_or_null(task.why)},
          {"reward", task.result.is_null() ? Json(nullptr) : reward_of(task.result)},
          {"result", task.result}};
}

}  // namespace assay::serve
