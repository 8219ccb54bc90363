// The folder of tasks: state/tasks/<id>.json, each whole or not at all, whatever kills the server.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "serve/task.h"
#include "util/file_lock.h"

namespace assay::serve {

// Thread-safe for different tasks; one server at a time has the folder.
class TaskStore {
 public:
  // Creates the folder. Throws Error where another server has it, or it cannot be written.
  explicit TaskStore(std::filesystem::path state);

  // On disk when it returns. Throws Error when there is no room; then what was there stands.
  void save(const Task&);
  // Nothing where there is no such task, or none of that name can be.
  std::optional<Task> load(const std::string& id) const;
  void remove(const std::string& id);
  // All, in order of arrival, without their results. Removes what a kill left half written.
  std::vector<Task> load_all();

 private:
  std::filesystem::path file_of(const std::string& id) const;

  std::filesystem::path tasks_;
  std::optional<FileLock> lock_;
};

bool is_task_id(const std::string&);

}  // namespace assay::serve
