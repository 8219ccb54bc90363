// Asks a judge for opinions: one request a sample, several at once, each kept as soon as its reply
// is there.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ask/requester.h"
#include "judge/opinion.h"

namespace assay::judge {

// A sample of an opinion that is still to be asked for.
struct Question {
  CellKey key;
  Prompt prompt;
  unsigned number = 1;  // the seed of the first; each next has one more
};

// The body of its request.
nlohmann::ordered_json request_of(const ask::Endpoint&, const Question&);

// The world that judging meets. All of it may be called by several threads at once, but for
// `store`.
struct JudgeWorld {
  ask::Transport& transport;
  ask::AskClock& clock;
  std::function<void(const Question&, const OpinionSample&)> store;  // throws Error
  // For people.
  std::function<std::shared_ptr<void>(const std::string& activity)> begin;
  std::function<void(const std::string&line)> finished, note;
};

struct JudgeResult {
  std::size_t with_marks = 0, without_marks = 0;  // replies that were stored
  std::size_t not_obtained = 0;                   // still to be asked
  ask::Spent spent;
};

// A fault of the endpoint ends a question, and all where it concerns all; one of the disk ends all,
// so that no reply is paid for and lost. Throws Stopped.
JudgeResult judge_all(const std::vector<Question>&, const Rubric&, const ask::Endpoint&,
                      std::size_t parallel, JudgeWorld&);

}  // namespace assay::judge
