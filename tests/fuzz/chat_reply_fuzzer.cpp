// libFuzzer target of an endpoint's replies: however the bytes are cut, the same is read, or
// refused for the same reason, and what is shown of it is safe.
#include <optional>

#include "ask/chat.h"
#include "assay/error.h"
#include "fuzz/promises.h"

namespace {

using namespace assay;

struct Read {
  std::optional<ask::Reply> reply;
  std::string refusal;
};

Read read_reply(std::string_view bytes, std::size_t piece, bool stream) {
  Read read;
  const bool accepted = fuzz::accepts([&] {
    ask::ReplyReader reader;
    try {
      for (std::size_t at = 0; at < bytes.size() && !reader.is_over(); at += piece)
        reader.feed(bytes.substr(at, piece), stream);
      read.reply = reader.finish();
    } catch (const Error& e) {
      read.refusal = e.what();
      throw;
    }
  });
  fuzz::require(accepted == read.reply.has_value(), "a reply is read or refused");
  fuzz::require_safe(read.refusal, "a refusal is safe to print");
  return read;
}

void check_one_line(const std::string& text, const char* promise) {
  fuzz::require_safe(text, promise);
  fuzz::require(text.find('\n') == std::string::npos, promise, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const bool stream = in.take<std::uint8_t>() % 2 == 1;
  const std::size_t piece = in.take<std::uint8_t>() + 1u;
  const std::string_view bytes = in.rest();
  const Read whole = read_reply(bytes, bytes.size() + 1, stream);
  const Read pieces = read_reply(bytes, piece, stream);
  fuzz::require(whole.refusal == pieces.refusal, "a refusal does not hang on where bytes are cut");
  if (whole.reply) {
    fuzz::require(whole.reply->content == pieces.reply->content &&
                      whole.reply->finish_reason == pieces.reply->finish_reason,
                  "a reply does not hang on where bytes are cut");
    check_one_line(why_no_answer(*whole.reply), "reasons are one safe line");
    for (const std::string* text :
         {&whole.reply->finish_reason, &whole.reply->id, &whole.reply->model})
      check_one_line(*text, "what is told of a reply is one safe line");
  }
  check_one_line(ask::error_text(bytes), "errors are one safe line");
  return 0;
}
