#include "ask/conversation.h"

namespace assay::ask {
namespace {

std::optional<std::int64_t> sum_of_turns(const std::vector<Turn>& turns,
                                         std::optional<std::int64_t> Reply::*count) {
  std::int64_t sum = 0;
  for (const Turn& turn : turns) {
    if (!(turn.reply.*count)) return {};
    sum += *(turn.reply.*count);
  }
  return sum;
}

}  // namespace

const char* language_name(Language language) { return language == Language::cpp ? "cpp" : "cuda"; }

std::optional<std::int64_t> Conversation::tokens_in() const {
  return sum_of_turns(turns, &Reply::tokens_in);
}

std::optional<std::int64_t> Conversation::tokens_out() const {
  return sum_of_turns(turns, &Reply::tokens_out);
}

double Conversation::seconds() const {
  double sum = 0;
  for (const Turn& turn : turns) sum += turn.seconds;
  return sum;
}

std::vector<Message> messages_of(const std::string& system, const std::string& prompt,
                                 const Conversation& conversation) {
  std::vector<Message> messages;
  if (!system.empty()) messages.push_back({"system", system});
  messages.push_back({"user", prompt});
  for (const Turn& turn : conversation.turns) {
    messages.push_back({"assistant", turn.reply.content});
    if (turn.feedback) messages.push_back({"user", turn.feedback->text});
  }
  return messages;
}

}  // namespace assay::ask
