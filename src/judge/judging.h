// Asks a judge for opinions: one request per sample, several at once, each stored as soon as its
// reply arrives.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ask/requester.h"
#include "judge/opinion.h"

namespace assay::judge {

// A sample of an opinion that is still to be requested.
struct Question {
  CellKey key;
  Prompt prompt;
  unsigned number = 1;  // the seed is the first sample's; each next one adds 1
};

// The body of the request.
nlohmann::ordered_json request_of(const ask::Endpoint&, const Question&);

// The outside world of judging. Thread-safe, except `store`.
struct JudgeWorld {
  ask::Transport& transport;
  ask::AskClock& clock;
  std::function<void(const Question&, const OpinionSample&)> store;  // throws Error
  // Progress messages for people.
  std::function<std::shared_ptr<void>(const std::string& activity)> begin;
  std::function<void(const std::string&line)> finished, note;
};

struct JudgeResult {
  std::size_t with_marks = 0, without_marks = 0;  // replies that were stored
  std::size_t not_obtained = 0;                   // still to be asked
  ask::Spent spent;
};

// A fault of the endpoint ends a question, or all questions if it concerns all; a disk fault ends
// all, so that no paid reply is lost. Throws Stopped.
JudgeResult judge_all(const std::vector<Question>&, const Rubric&, const ask::Endpoint&,
                      std::size_t parallel, JudgeWorld&);

}  // namespace assay::judge
