// Asks an endpoint for samples. Each is a conversation of one or several turns, journaled as it
// goes and then stored as an attempt. Several run at once; the result does not depend on their
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ask/chat.h"
#include "ask/conversation.h"
#include "ask/http.h"
#include "ask/journal.h"
#include "ask/requester.h"
#include "submission/submission.h"

namespace assay::ask {

struct AskOptions : Endpoint {
  std::string name;    // of the model, in submissions/
  std::string system;  // "" for none
  unsigned turns = 1;  // most answers per sample
  std::size_t parallel = 4;
  std::string version;           // of assay
  std::filesystem::path folder;  // of unfinished conversations
};

// Everything that determines a sample's answer, except chance. Holds no secret.
nlohmann::ordered_json settings_of(const AskOptions&, const Sample&);
JournalHead head_of(const AskOptions&, const Sample&);
// The journal of a conversation until it is stored.
std::filesystem::path journal_path(const AskOptions&, const Sample&);
// The body of a sample's next request.
nlohmann::ordered_json next_request(const AskOptions&, const Sample&, const Conversation&);

// The answer found in a reply: files, or why there are none.
struct Found {
  std::vector<SourceFile> files;
  std::string how;         // how they were found
  bool cut_off = false;    // the reply ends within a file
  bool ambiguous = false;  // there is code, but it is unclear which part is the answer
  std::string problem;     // why there are no files, for the model and for people
};

// A finished conversation, and what to store of it.
struct Finished {
  const Sample& sample;
  const Conversation& conversation;
  std::size_t turn = 0;  // the turn with the answer, from 0
  Found found;           // files, or the problem; never ambiguous
  std::filesystem::path journal;
};

// The outside world of asking. Thread-safe, except `store`.
struct AskWorld {
  Transport& transport;
  AskClock& clock;
  std::function<Found(const Sample&, const std::string& reply)> find;
  // Checks an answer's files; used only with several turns.
  std::function<Feedback(const Sample&, const std::vector<SourceFile>&)> check;
  // Stores an attempt and returns its folder. Called in sample order within a challenge.
  std::function<std::filesystem::path(const Finished&)> store;
  // Progress messages for people.
  std::function<std::shared_ptr<void>(const std::string& activity)> begin;
  std::function<void(const std::string&line)> finished, note;
};

enum class Ending : std::uint8_t {
  answered,   // stored
  no_answer,  // stored, with the reason
  unclear,    // a person must decide which block is the answer; kept in the folder
  failed,     // endpoint or disk fault: the sample is still to be asked
  not_asked,  // because another sample failed
};

struct Outcome {
  Ending ending = Ending::not_asked;
  std::string reason;
  std::filesystem::path where;  // the attempt, or the kept conversation
};

struct AskResult {
  std::vector<Outcome> outcomes;  // in the order of the samples
  Spent spent;
};

// Asks all samples, continuing where their journals end. A fault of the endpoint or the disk ends a
// sample, or all samples if it concerns all; no answer is lost. Throws Stopped.
AskResult ask_all(const std::vector<Sample>&, const AskOptions&, AskWorld&);

}  // namespace assay::ask
