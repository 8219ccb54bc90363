#include "ask/sse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/error.h"

namespace assay::ask {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> events_of(const std::string& bytes, std::size_t piece) {
  std::vector<std::string> events;
  EventParser parser([&](const std::string& data) { events.push_back(data); }, 1000);
  for (std::size_t at = 0; at < bytes.size(); at += piece) parser.feed(bytes.substr(at, piece));
  return events;
}

TEST(EventParser, TakesEventsHoweverTheBytesAreCut) {
  const std::string stream =
      "\xef\xbb\xbf"
      "data: one\n\n: a comment\r\n\r\ndata:two\r\ndata:  three\r\n\r\nevent: x\rid: 1\rdata\r\r"
      "retry: 5\n\ndatabase: no\n\ndata: {\"a\": \"b\"}\n\n";
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    EXPECT_THAT(events_of(stream, piece), ElementsAre("one", "two\n three", "", "{\"a\": \"b\"}"))
        << piece;
  }
}

TEST(EventParser, AnEventThatIsCutOffIsNone) {
  EXPECT_THAT(events_of("data: whole\n\ndata: half\n", 3), ElementsAre("whole"));
  EXPECT_THAT(events_of("data: half", 1), IsEmpty());
}

TEST(EventParser, IsBounded) {
  EXPECT_THROW(events_of("data: " + std::string(1001, 'x'), 7), Error);
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "data: 123456789\n";
  EXPECT_THROW(events_of(lines, 7), Error);
}

}  // namespace
}  // namespace assay::ask
