#include "sandbox/launch_request.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace assay::sandbox {
namespace {

TEST(LaunchRequest, ArrivesElsewhereAsItWasSent) {
  LaunchRequest request;
  Launch& sent = request.launch;
  sent.uid = 7;
  sent.uid_map = request.text("1 2 3");
  sent.exec_path = request.text("");
  sent.mounts = request.values(std::vector<LaunchMount>{
      {request.text("/host"), request.text("/inside"), true, false},
      {request.text(std::string(5000, 'x')), request.text("/b"), false, true}});
  sent.parents = request.texts({"/a", "/a/b"});
  sent.arguments = request.arguments({"program", "", "last"});
  sent.values = request.arguments({});
  sent.filter = request.values(std::vector<sock_filter>{{1, 2, 3, 4}, {5, 6, 7, 8}});
  sent.group = request.descriptor(-1);
  sent.report = request.descriptor(40);
  sent.fds = request.descriptors_of({50, 40, 60});
  EXPECT_EQ(request.descriptors(), (std::vector{40, 50, 40, 60}));

  std::vector<std::byte> block = request.block();
  const int received[] = {140, 150, 240, 160};
  const Launch& launch = arrive(block.data(), received);
  EXPECT_EQ(launch.uid, 7u);
  EXPECT_STREQ(launch.uid_map, "1 2 3");
  EXPECT_EQ(launch.gid_map, nullptr);
  EXPECT_STREQ(launch.exec_path, "");
  ASSERT_EQ(launch.mounts.size(), 2u);
  EXPECT_STREQ(launch.mounts[0].host, "/host");
  EXPECT_STREQ(launch.mounts[0].inside, "/inside");
  EXPECT_TRUE(launch.mounts[0].writable);
  EXPECT_EQ(launch.mounts[1].host, std::string(5000, 'x'));
  EXPECT_TRUE(launch.mounts[1].directory);
  ASSERT_EQ(launch.parents.size(), 2u);
  EXPECT_STREQ(launch.parents[1], "/a/b");
  EXPECT_STREQ(launch.arguments[0], "program");
  EXPECT_STREQ(launch.arguments[1], "");
  EXPECT_STREQ(launch.arguments[2], "last");
  EXPECT_EQ(launch.arguments[3], nullptr);
  EXPECT_EQ(launch.values[0], nullptr);
  ASSERT_EQ(launch.filter.size(), 2u);
  EXPECT_EQ(launch.filter[1].k, 8u);
  EXPECT_EQ(launch.group, -1);
  EXPECT_EQ(launch.report, 140);
  EXPECT_EQ((std::vector<int>(launch.fds.begin(), launch.fds.end())), (std::vector{150, 240, 160}));
}

}  // namespace
}  // namespace assay::sandbox
