#include "serve/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace assay::serve {
namespace {

class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ours_ = Fd(ends[0]);
    client_ = Fd(ends[1]);
  }
  void TearDown() override {
    client_.reset();  // else the connection would wait for it
    connection_.reset();
  }
  void connect(ConnectionLimits limits = {}) { connection_.emplace(std::move(ours_), limits); }
  void send(std::string_view text) const {
    ASSERT_EQ(::write(client_.get(), text.data(), text.size()), std::ssize(text));
  }
  // Byte by byte, as the library reads a head; ends where reading fails.
  std::string read(std::size_t most) {
    std::string text;
    for (char c; text.size() < most && connection_->read(&c, 1) == 1;) text += c;
    return text;
  }

  Fd ours_, client_;
  std::optional<Connection> connection_;
};

TEST_F(ConnectionTest, WhatIsSentIsRead) {
  connect();
  send("GET / HTTP/1.1\r\n\r\nbody");
  EXPECT_EQ(read(22), "GET / HTTP/1.1\r\n\r\nbody");
  ASSERT_EQ(connection_->write("answer", 6), 6);
  char text[7] = "";
  EXPECT_EQ(::read(client_.get(), text, 6), 6);
  EXPECT_STREQ(text, "answer");
  client_.reset();
  EXPECT_EQ(read(1), "");
}

TEST_F(ConnectionTest, AHeadHasALimitAndABodyHasNone) {
  connect({.head_bytes = 30});
  send("GET / HTTP/1.1\r\n\r\n" + std::string(100, 'x'));
  EXPECT_EQ(read(118).size(), 118u);
}

TEST_F(ConnectionTest, AnEndlessHeadIsNotReadToItsEnd) {
  connect({.head_bytes = 30});
  send("GET / HTTP/1.1\r\nX: " + std::string(100, 'x'));
  EXPECT_EQ(read(200).size(), 30u);
}

TEST_F(ConnectionTest, ASlowHeadIsNotWaitedForAgainWithEachByte) {
  connect({.head_seconds = 0.05, .close_seconds = 0});
  send("GET");
  EXPECT_LT(read(4).size(), 4u);
  send(" ");
  EXPECT_EQ(read(1), "");
}

TEST_F(ConnectionTest, OnlyAnEmptyLineEndsTheHead) {
  for (const std::string_view no_end : {"\n\n", "\r\r\n", "\r\n\r\r\n", "\n\r\r\n"}) {
    SetUp();
    connect({.head_bytes = 30, .close_seconds = 0});
    send("GET / HTTP/1.1" + std::string(no_end) + std::string(100, 'x'));
    EXPECT_EQ(read(200).size(), 30u);
  }
}

TEST_F(ConnectionTest, ASlowBodyEndsToo) {
  connect({.head_seconds = 30, .request_seconds = 0.05, .close_seconds = 0});
  send("GET / HTTP/1.1\r\n\r\nbo");
  EXPECT_LE(read(100).size(), 20u);
}

TEST_F(ConnectionTest, AnAnswerOutlivesABodyThatWasNotRead) {
  connect({.close_seconds = 30});
  send("POST / HTTP/1.1\r\n\r\n" + std::string(10'000, 'x'));
  EXPECT_EQ(read(19).size(), 19u);
  ASSERT_EQ(connection_->write("no", 2), 2);
  std::jthread closing([&] { connection_.reset(); });
  char text[2];
  ASSERT_EQ(::read(client_.get(), text, 2), 2);
  EXPECT_EQ(::read(client_.get(), text, 2), 0) << "nothing follows";
  send("more of the body");
  client_.reset();
}

}  // namespace
}  // namespace assay::serve
