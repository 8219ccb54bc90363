#include "util/loopback.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Loopback, IsThisMachineAlone) {
  for (const char* host :
       {"127.0.0.1", "127.8.0.1", "::1", "0:0:0:0:0:0:0:1", "localhost", "a.localhost"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"0.0.0.0", "::", "::2", "10.0.0.1", "127.0.0.1.example.org", "127.1.2",
                           "localhost.example.com", "notlocalhost", ""})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(HostOf, LeavesThePortAway) {
  EXPECT_EQ(host_of("localhost:8077"), "localhost");
  EXPECT_EQ(host_of("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(host_of("[::1]:8077"), "::1");
  EXPECT_EQ(host_of("[::1]"), "::1");
  EXPECT_EQ(host_of("["), "");
  EXPECT_EQ(host_of(""), "");
}

}  // namespace
}  // namespace assay
