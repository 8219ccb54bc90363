// One sample: a question, and the conversation about it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ask/chat.h"
#include "submission/submission.h"

namespace assay::ask {

struct Sample {
  std::string challenge;
  Language language = Language::cpp;
  unsigned number = 1;  // among samples with the same settings, from 1
  std::string prompt;
};

const char* language_name(Language);  // "cpp", "cuda"

// Feedback to the model on its answer.
struct Feedback {
  bool passed = false;  // nothing left to improve
  std::string text;
};

struct Turn {
  Reply reply;
  double seconds = 0;  // of the request that succeeded
  std::optional<Feedback> feedback;
};

struct Conversation {
  std::vector<Turn> turns;
  unsigned failures = 0;  // requests without a reply

  // Totals over all turns; nothing if the count of any turn is unknown.
  std::optional<std::int64_t> tokens_in() const, tokens_out() const;
  double seconds() const;
};

// The messages that ask for the next turn.
std::vector<Message> messages_of(const std::string& system, const std::string& prompt,
                                 const Conversation&);

}  // namespace assay::ask
