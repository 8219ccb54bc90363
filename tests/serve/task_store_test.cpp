#include "serve/task_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::serve {
namespace {

using ::testing::HasSubstr;

class TaskStoreTest : public ::testing::Test {
 protected:
  static Task task(char digit, std::uint64_t number) {
    return {.id = std::string(32, digit),
            .number = number,
            .status = TaskStatus::done,
            .owner = "o",
            .client = "c",
            .challenge = "copying",
            .language = "cpp",
            .priority = 2,
            .created_at = "then",
            .finished_at = "now",
            .deadline = 5,
            .key = "k",
            .cached = true,
            .why = "w",
            .request = {{"a", 1}},
            .result = {{"b", 2}}};
  }
  static std::vector<Task> all_of(TaskStore& store) {
    std::vector<Task> all;
    store.for_each([&](Task task) { all.push_back(std::move(task)); });
    return all;
  }
  assay::testing::TemporaryFolder folder_;
};

TEST_F(TaskStoreTest, WhatIsSavedIsLoadedInAnotherProcessOfThatFolder) {
  const Task saved = task('a', 1);
  { TaskStore(folder_.path).save(saved); }
  const std::optional<Task> loaded = TaskStore(folder_.path).load(saved.id);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(to_json(*loaded), to_json(saved));
}

TEST_F(TaskStoreTest, EveryStatusSurvives) {
  for (const TaskStatus status :
       {TaskStatus::queued, TaskStatus::running, TaskStatus::done, TaskStatus::failed,
        TaskStatus::cancelled, TaskStatus::expired, TaskStatus::lost}) {
    EXPECT_EQ(task_status_from(to_string(status)), status);
  }
  EXPECT_EQ(task_status_from("gone"), std::nullopt);
}

TEST_F(TaskStoreTest, AllComeInOrderOfArrivalWithoutResults) {
  TaskStore store(folder_.path);
  store.save(task('b', 1));
  store.save(task('a', 2));
  const std::vector<Task> all = all_of(store);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].number, 1u);
  EXPECT_TRUE(all[1].result.is_null());
}

TEST_F(TaskStoreTest, WhatAKillLeftHalfWrittenGoes) {
  TaskStore store(folder_.path);
  const auto half = folder_.path / "tasks" / (std::string(32, 'a') + ".json.tmp");
  write_file_atomically(half, "{");
  EXPECT_TRUE(all_of(store).empty());
  EXPECT_FALSE(std::filesystem::exists(half));
}

TEST_F(TaskStoreTest, NoNameLeadsOutOfTheFolder) {
  TaskStore store(folder_.path);
  write_file_atomically(folder_.path / "secret.json", to_json(task('a', 1)).dump());
  for (const char* id : {"../secret", "", "A", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/"}) {
    EXPECT_FALSE(is_task_id(id));
    EXPECT_FALSE(store.load(id));
    store.remove(id);
  }
  EXPECT_TRUE(std::filesystem::exists(folder_.path / "secret.json"));
}

TEST_F(TaskStoreTest, OneServerHasTheFolder) {
  const TaskStore store(folder_.path);
  EXPECT_THAT(assay::testing::error_of([&] { TaskStore another(folder_.path); }),
              HasSubstr("another assay serve has"));
}

TEST_F(TaskStoreTest, AFileThatIsNoTaskIsNamed) {
  TaskStore store(folder_.path);
  const auto file = folder_.path / "tasks" / (std::string(32, 'a') + ".json");
  for (const char* text : {"{", "{}", R"({"schema": 99})"}) {
    write_file_atomically(file, text);
    EXPECT_THAT(assay::testing::error_of([&] { all_of(store); }), HasSubstr(file.string()));
  }
}

}  // namespace
}  // namespace assay::serve
