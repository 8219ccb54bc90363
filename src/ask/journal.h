// A conversation on disk, as JSON Lines. Each line is on disk before the next step begins, so that
// after a kill at any moment it is known what was asked, and nothing answered is asked again.
//
//   begin     the sample and its settings
//   request   a turn's request as sent, without headers
//   failure   a try without a reply
//   reply     the model's reply
//   feedback  what the model is told about it
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ask/conversation.h"
#include "ask/retry.h"
#include "assay/error.h"

namespace assay::ask {

// The first line of a conversation.
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

// The head of a conversation's file; nothing if it is not one.
std::optional<JournalHead> read_journal_head(const std::filesystem::path&);

class Journal {
 public:
  // Continues the file, or creates it. Throws Error if it holds another sample, or lines that do
  // not belong to a conversation.
  Journal(std::filesystem::path, const JournalHead&);

  const std::filesystem::path& path() const { return path_; }
  const Conversation& conversation() const { return conversation_; }

  // Each line is on disk when the call returns. Throws NotStored if there is no room; the file is
  // then unchanged.
  void add_request(const nlohmann::ordered_json& body);
  void add_failure(const Fault&, double seconds, std::optional<double> wait);
  void add_reply(const Reply&, double seconds);
  void add_feedback(const Feedback&);

 private:
  void append(nlohmann::ordered_json line);
  void replay(const nlohmann::json& line);

  std::filesystem::path path_;
  Conversation conversation_;
  bool asked_ = false;  // the file already holds the next turn's request
};

// A line could not be stored because the disk is full. line() still has its text.
class NotStored : public Error {
 public:
  NotStored(const std::string& cause, std::string line) : Error(cause), line_(std::move(line)) {}
  const std::string& line() const { return line_; }

 private:
  std::string line_;
};

}  // namespace assay::ask
