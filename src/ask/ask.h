// Asks an endpoint for samples: each a conversation of one or several turns, kept as it goes,
// then stored as an attempt. Several at once; what they become does not hang on who is first.
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
  unsigned turns = 1;  // at most so many answers a sample
  std::size_t parallel = 4;
  std::string version;           // of assay
  std::filesystem::path folder;  // of conversations that are not over
};

// What decides a sample's answer, but for chance. Holds no secret.
nlohmann::ordered_json settings_of(const AskOptions&, const Sample&);
JournalHead head_of(const AskOptions&, const Sample&);
// Where a conversation lies until it is stored.
std::filesystem::path journal_path(const AskOptions&, const Sample&);
// The body of a sample's next request.
nlohmann::ordered_json next_request(const AskOptions&, const Sample&, const Conversation&);

// What a reply holds of an answer: files, or why there are none.
struct Found {
  std::vector<SourceFile> files;
  std::string how;         // they were found
  bool cut_off = false;    // the reply ends within one
  bool ambiguous = false;  // there is code, and it is not clear which is the answer
  std::string problem;     // without files, for the model and for people
};

// A conversation that is over, and what is to be stored of it.
struct Finished {
  const Sample& sample;
  const Conversation& conversation;
  std::size_t turn = 0;  // whose answer it is, from 0
  Found found;           // files, or the problem; never ambiguous
  std::filesystem::path journal;
};

// The world that asking meets. All of it may be called by several threads at once, but for `store`.
struct AskWorld {
  Transport& transport;
  AskClock& clock;
  std::function<Found(const Sample&, const std::string& reply)> find;
  // What is said about an answer's files; with turns alone.
  std::function<Feedback(const Sample&, const std::vector<SourceFile>&)> check;
  // Stores an attempt and returns its folder. Of the same challenge: in the order of the samples.
  std::function<std::filesystem::path(const Finished&)> store;
  // For people.
  std::function<std::shared_ptr<void>(const std::string& activity)> begin;
  std::function<void(const std::string&line)> finished, note;
};

enum class Ending : std::uint8_t {
  answered,   // stored
  no_answer,  // stored, with the reason
  unclear,    // which block is the answer is to be decided by hand; kept in the folder
  failed,     // the endpoint, or a disk: the sample is still to be asked
  not_asked,  // because of another's failure
};

struct Outcome {
  Ending ending = Ending::not_asked;
  std::string reason;
  std::filesystem::path where;  // the attempt, or what is kept
};

struct AskResult {
  std::vector<Outcome> outcomes;  // in the order of the samples
  Spent spent;
};

// Asks all samples, going on where their journals end. A fault of the endpoint, or of the disk,
// ends a sample, and all where it concerns all; nothing that was answered is lost by it. Throws
// Stopped.
AskResult ask_all(const std::vector<Sample>&, const AskOptions&, AskWorld&);

}  // namespace assay::ask
