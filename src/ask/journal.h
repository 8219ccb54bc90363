// A conversation on disk: JSON Lines, of which each is there before the next step is taken. What
// was asked is known after a kill at any moment, and nothing that was answered is asked again.
//
//   begin     who is asked what: the sample and its settings
//   request   a turn's request, as it is sent, without its headers
//   failure   a try that brought no reply
//   reply     what the model said
//   feedback  what it is told about that
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ask/conversation.h"
#include "ask/retry.h"
#include "assay/error.h"

namespace assay::ask {

// What the first line of a conversation says.
struct JournalHead {
  std::string name;  // of the model, in submissions/
  std::string challenge;
  Language language = Language::cpp;
  unsigned number = 0;
  std::string settings_hash;
  nlohmann::ordered_json settings;  // url, model, temperature ...
  std::string version;              // of assay

  bool is_same_sample(const JournalHead&) const;
};

// Of a conversation's file; nothing where it is none.
std::optional<JournalHead> read_journal_head(const std::filesystem::path&);

class Journal {
 public:
  // Goes on with the file, or begins it. Throws Error when it holds another sample, or lines that
  // are not of a conversation.
  Journal(std::filesystem::path, const JournalHead&);

  const std::filesystem::path& path() const { return path_; }
  const Conversation& conversation() const { return conversation_; }

  // Each is on disk when it returns. Throws Error when there is no room; the file is as it was.
  void add_request(const nlohmann::ordered_json& body);
  void add_failure(const Fault&, double seconds, std::optional<double> wait);
  void add_reply(const Reply&, double seconds);
  void add_feedback(const Feedback&);

 private:
  void append(nlohmann::ordered_json line);
  void replay(const nlohmann::json& line);

  std::filesystem::path path_;
  Conversation conversation_;
  bool asked_ = false;  // the request of the turn that is due stands in the file
};

// A line could not be stored: the disk is full. What it would have said is in memory still.
class NotStored : public Error {
 public:
  NotStored(const std::string& cause, std::string line) : Error(cause), line_(std::move(line)) {}
  const std::string& line() const { return line_; }

 private:
  std::string line_;
};

}  // namespace assay::ask
