// Clusters of blocks: their barrier, the shared memory of other blocks, and what is found in its use.
#include "sim/execution/cluster_run.h"

#include <initializer_list>
#include <string>
#include <string_view>

#include "sim/device/device_fixture.h"

namespace assay::sim {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// %r1: the block's index, %r2: its rank, %r3: that of the next block of the cluster; %out: this
// thread's place in the whole grid. %r4: this thread's word of data.
constexpr std::string_view kBegin = R"(
  .shared .align 4 .b8 data[256];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r5, %cluster_nctarank;
  add.u32 %r3, %r2, 1;
  rem.u32 %r3, %r3, %r5;
  mov.u32 %r6, %ntid.x;
  mad.lo.u32 %r7, %r1, %r6, %t;
  mad.wide.u32 %out, %r7, 4, %base;
  mov.u32 %r8, data;
  mad.lo.u32 %r4, %t, 4, %r8;
)";
// Each thread stores 100 times its block's index plus its own.
constexpr std::string_view kStore = R"(
  mad.lo.u32 %r9, %r1, 100, %t;
  st.shared.u32 [%r4], %r9;
)";
// What the next block's thread has stored.
constexpr std::string_view kReadNext = R"(
  mapa.shared::cluster.u32 %r10, %r4, %r3;
  ld.shared::cluster.u32 %r11, [%r10];
  st.global.u32 [%out], %r11;
)";

class ClusterTest : public DeviceTest {
 protected:
  // Launches k in clusters of `cluster` blocks and returns out.
  std::vector<std::uint32_t> in_clusters(std::uint32_t blocks, std::uint32_t cluster,
                                         std::uint32_t threads = 32) {
    const std::size_t count = std::size_t{blocks} * threads;
    const std::uint64_t out = upload(std::vector<std::uint32_t>(count));
    LaunchConfig config = shape(blocks, threads);
    config.cluster.x = cluster;
    result = launch(config, "k", out, std::uint64_t{0});
    return download<std::uint32_t>(out, count);
  }
  std::vector<std::string> descriptions() const {
    std::vector<std::string> all;
    for (const Finding& f : result.findings) all.push_back(f.describe());
    return all;
  }
};

TEST_F(ClusterTest, BlocksReadWhatTheNextOneStored) {
  load_kernel(joined({kBegin, kStore, kClusterBarrier, kReadNext, kClusterBarrier}));
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    device.set_shuffle_seed(seed);
    const std::vector<std::uint32_t> out = in_clusters(8, 4, 64);
    EXPECT_EQ(result.status, LaunchStatus::ok);
    EXPECT_THAT(descriptions(), IsEmpty());
    for (std::uint32_t i = 0; i < out.size(); ++i) {
      const std::uint32_t block = i / 64, next = block / 4 * 4 + (block + 1) % 4;
      ASSERT_EQ(out[i], next * 100 + i % 64) << i;
    }
  }
}

TEST_F(ClusterTest, AnotherBlocksMemoryTakesTwoPassesASector) {
  load_kernel(joined({kBegin, kStore, kClusterBarrier, kReadNext, kClusterBarrier}));
  in_clusters(2, 2);
  // For each block a store of 32 words, and a load of 4 sectors.
  EXPECT_EQ(result.counters.shared_passes, 2u * (1 + 2 * 4));
  EXPECT_EQ(result.counters.shared_loads, 2u);
  EXPECT_EQ(result.counters.shared_bytes, 2u * (128 + 128));
  EXPECT_EQ(result.counters.barriers, 4u);
}

TEST_F(ClusterTest, GenericAddressesOfOtherBlocks) {
  load_kernel(joined({kBegin, kStore, kClusterBarrier, R"(
  cvt.u64.u32 %rd1, %r4;
  cvta.shared.u64 %rd2, %rd1;
  mapa.u64 %rd3, %rd2, %r3;
  getctarank.u64 %r12, %rd3;
  getctarank.u64 %r13, %rd2;
  isspacep.shared %p1, %rd3;
  isspacep.shared::cluster %p2, %rd3;
  isspacep.shared::cta %p3, %rd2;
  mapa.u64 %rd4, %rd2, %r2;
  isspacep.shared::cta %p4, %rd4;
  ld.u32 %r11, [%rd3];
  ld.u32 %r14, [%rd4];
  sub.u32 %r11, %r11, %r14;
  mad.lo.u32 %r11, %r12, 1000, %r11;
  mad.lo.u32 %r11, %r13, 10000, %r11;
  selp.u32 %r15, 100000, 0, %p1;
  add.u32 %r11, %r11, %r15;
  and.pred %p2, %p2, %p3;
  and.pred %p2, %p2, %p4;
  selp.u32 %r15, 200000, 0, %p2;
  add.u32 %r11, %r11, %r15;
  st.global.u32 [%out], %r11;)",
                      kClusterBarrier}));
  const std::vector<std::uint32_t> out = in_clusters(2, 2);
  EXPECT_THAT(descriptions(), IsEmpty());
  EXPECT_EQ(out[0], 200000u + 1000 + 100);
  EXPECT_EQ(out[32], 200000u + 10000 - 100);
}

TEST_F(ClusterTest, SpecialRegisters) {
  load_kernel(R"(
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ctaid.y;
  mov.u32 %r3, %clusterid.x;
  mov.u32 %r4, %clusterid.y;
  mov.u32 %r5, %nclusterid.x;
  mov.u32 %r6, %cluster_ctaid.x;
  mov.u32 %r7, %cluster_ctaid.y;
  mov.u32 %r8, %cluster_ctarank;
  mov.u32 %r9, %cluster_nctarank;
  mov.pred %p1, %is_explicit_cluster;
  selp.u32 %r10, 1, 0, %p1;
  mad.lo.u32 %r10, %r10, 10, %r9;
  mad.lo.u32 %r10, %r10, 10, %r8;
  mad.lo.u32 %r10, %r10, 10, %r7;
  mad.lo.u32 %r10, %r10, 10, %r6;
  mad.lo.u32 %r10, %r10, 10, %r5;
  mad.lo.u32 %r10, %r10, 10, %r4;
  mad.lo.u32 %r10, %r10, 10, %r3;
  mad.lo.u32 %r11, %r2, 4, %r1;
  mad.wide.u32 %rd1, %r11, 4, %base;
  st.global.u32 [%rd1], %r10;)");
  const std::uint64_t out = upload(std::vector<std::uint32_t>(16));
  LaunchConfig config = shape(4, 1);
  config.grid.y = 4;
  config.cluster = {2, 2, 1};
  EXPECT_EQ(launch(config, "k", out, std::uint64_t{0}).status, LaunchStatus::ok);
  const auto found = download<std::uint32_t>(out, 16);
  // explicit, blocks, rank, y and x in the cluster, clusters across, the cluster's y and x
  EXPECT_EQ(found[0], 14000200u);
  EXPECT_EQ(found[1], 14101200u);
  EXPECT_EQ(found[2], 14000201u);
  EXPECT_EQ(found[4 + 3], 14311201u);
  EXPECT_EQ(found[8 + 1], 14101210u);
  config.cluster = {};
  EXPECT_EQ(launch(config, "k", out, std::uint64_t{0}).status, LaunchStatus::ok);
  EXPECT_EQ(download<std::uint32_t>(out, 16)[4 + 3], 1000413u);
}

TEST_F(ClusterTest, StoresAndAtomicsReachOtherBlocks) {
  load_kernel(joined({kBegin, R"(
  st.shared.u32 [%r4], 0;)",
                      kClusterBarrier, R"(
  mapa.shared::cluster.u32 %r10, %r8, 0;
  red.shared::cluster.add.u32 [%r10], 1;
  mapa.shared::cluster.u32 %r10, %r4, %r3;
  setp.eq.u32 %p1, %t, 0;
  @!%p1 st.shared::cluster.u32 [%r10], %r7;)",
                      kClusterBarrier, R"(
  ld.shared.u32 %r11, [%r4];
  st.global.u32 [%out], %r11;)"}));
  const std::vector<std::uint32_t> out = in_clusters(4, 4);
  EXPECT_THAT(descriptions(), IsEmpty());
  EXPECT_EQ(out[0], 128u);
  EXPECT_EQ(out[32], 0u);
  EXPECT_EQ(out[1], 3u * 32 + 1);
  EXPECT_EQ(out[32 + 5], 5u);
}

TEST_F(ClusterTest, ABlockMayNotHaveBegun) {
  load_kernel(joined({kBegin, kStore, kReadNext, kClusterBarrier}));
  in_clusters(2, 2);
  ASSERT_THAT(kinds(result), Contains(FindingKind::shared_race));
  EXPECT_THAT(descriptions(), Contains(HasSubstr("has begun")));
  EXPECT_THAT(descriptions(), Contains(HasSubstr("of block (1,0,0)'s shared memory")));
}

TEST_F(ClusterTest, ABlockMayHaveEnded) {
  load_kernel(joined({kBegin, kStore, kClusterBarrier, kReadNext}));
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    device.set_shuffle_seed(seed);
    in_clusters(16, 2);  // some blocks end before the access, others after it
    EXPECT_THAT(descriptions(), ElementsAre(HasSubstr("ended")));
  }
}

TEST_F(ClusterTest, AccessesThatOnlyABarrierOfTheBlockSeparates) {
  load_kernel(joined({kBegin, kStore, kClusterBarrier, kReadNext, R"(
  bar.sync 0;
  st.shared.u32 [%r4], 0;)",
                      kClusterBarrier}));
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    device.set_shuffle_seed(seed);
    in_clusters(2, 2);
    EXPECT_THAT(descriptions(), Contains(HasSubstr("no barrier of the cluster lies between")));
  }
}

// Between arrival and wait, a block may not touch what the others read before their arrival.
TEST_F(ClusterTest, AnArrivalOrdersOnlyWhatPrecedesIt) {
  load_kernel(joined({kBegin, kStore, kClusterBarrier, R"(
  mapa.shared::cluster.u32 %r10, %r4, %r3;
  ld.shared::cluster.u32 %r11, [%r10];
  st.global.u32 [%out], %r11;
  barrier.cluster.arrive.aligned;
  st.shared.u32 [%r4], 0;
  barrier.cluster.wait.aligned;)"}));
  in_clusters(2, 2);
  EXPECT_THAT(descriptions(), Contains(HasSubstr("no barrier of the cluster lies between")));
}

TEST_F(ClusterTest, WarpsOfABlockAreOrderedByTheClustersBarrierToo) {
  load_kernel(joined({kBegin, kStore, kClusterBarrier, R"(
  xor.b32 %r10, %r4, 128;
  ld.shared.u32 %r11, [%r10];
  st.global.u32 [%out], %r11;)",
                      kClusterBarrier, kStore, R"(
  barrier.cluster.arrive;
  setp.lt.u32 %p1, %t, 32;
  @%p1 bra wait;
  nanosleep.u32 100;
wait:
  barrier.cluster.wait;
  ld.shared.u32 %r11, [%r10];)"}));
  EXPECT_EQ(in_clusters(2, 2, 64)[0], 32u);
  EXPECT_THAT(descriptions(), IsEmpty());
  load_kernel(joined({kBegin, kStore, R"(
  barrier.cluster.arrive;
  xor.b32 %r10, %r4, 128;
  ld.shared.u32 %r11, [%r10];
  barrier.cluster.wait;)"}));
  in_clusters(2, 2, 64);
  EXPECT_THAT(kinds(result), Each(FindingKind::shared_race));
  EXPECT_THAT(descriptions(), Contains(HasSubstr("of the block")));
}

TEST_F(ClusterTest, TheBarrierOrdersGlobalMemory) {
  constexpr std::string_view kExchange = R"(
  mad.lo.u32 %r9, %r3, %r6, %t;
  mad.wide.u32 %rd1, %r9, 4, %base;
  ld.global.u32 %r11, [%rd1];)";
  constexpr std::string_view kPut = "st.global.u32 [%out], %r1;\n";
  load_kernel(joined({kBegin, kPut, kClusterBarrier, kExchange}));
  in_clusters(2, 2);
  EXPECT_THAT(descriptions(), IsEmpty());
  load_kernel(joined({kBegin, kPut, kExchange, kClusterBarrier}));
  in_clusters(2, 2);
  EXPECT_THAT(kinds(result), Contains(FindingKind::global_race));
}

TEST_F(ClusterTest, ExitedThreadsAreNotWaitedFor) {
  load_kernel(joined({kBegin, R"(
  setp.eq.u32 %p1, %r2, 1;
  @%p1 bra end;)",
                      kClusterBarrier, R"(
  st.global.u32 [%out], 7;
end:)"}));
  const std::vector<std::uint32_t> out = in_clusters(2, 2);
  EXPECT_EQ(result.status, LaunchStatus::ok);
  EXPECT_EQ(out[0], 7u);
  EXPECT_EQ(out[32], 0u);
}

TEST_F(ClusterTest, NobodyCanGoOn) {
  load_kernel(joined({kBegin, R"(
  setp.eq.u32 %p1, %r2, 1;
  @%p1 bar.sync 1, 64;)",
                      kClusterBarrier}));
  in_clusters(2, 2);
  EXPECT_EQ(result.status, LaunchStatus::timeout);
  EXPECT_THAT(kinds(result), ElementsAre(FindingKind::deadlock));
}

TEST_F(ClusterTest, WrongUsesOfTheBarrier) {
  load_kernel("barrier.cluster.wait;");
  in_clusters(2, 2);
  EXPECT_THAT(descriptions(), ElementsAre(HasSubstr("at which it has not arrived")));
  load_kernel("barrier.cluster.arrive;\nbarrier.cluster.arrive;");
  in_clusters(2, 2);
  EXPECT_THAT(descriptions(), ElementsAre(HasSubstr("again before it has waited")));
}

TEST_F(ClusterTest, PlacesOutsideTheCluster) {
  load_kernel(joined({kBegin, kStore, kClusterBarrier, "mapa.shared::cluster.u32 %r10, %r4, 2;"}));
  in_clusters(2, 2);
  EXPECT_THAT(descriptions(), ElementsAre(HasSubstr("rank 2 in a cluster of 2")));
  load_kernel(joined({kBegin, kStore, kClusterBarrier, R"(
  mapa.shared::cluster.u32 %r10, %r4, %r3;
  ld.shared::cluster.u32 %r11, [%r10+256];)"}));
  in_clusters(2, 2);
  EXPECT_EQ(result.status, LaunchStatus::illegal_address);
  EXPECT_THAT(descriptions(),
              ElementsAre(AllOf(HasSubstr("offset 256 of block"), HasSubstr("has 256 bytes"))));
}

TEST_F(ClusterTest, WhatNothingHasWritten) {
  load_kernel(joined({kBegin, kClusterBarrier, R"(
  mapa.shared::cluster.u32 %r10, %r4, %r3;
  ld.shared::cluster.u32 %r11, [%r10];
  setp.eq.u32 %p1, %r11, 0;
  @%p1 st.global.u32 [%out], 1;)",
                      kClusterBarrier}));
  in_clusters(2, 2);
  EXPECT_THAT(kinds(result), ElementsAre(FindingKind::uninitialised));
}

TEST_F(ClusterTest, UndefinedValuesStoredInAnotherBlock) {
  load_kernel(joined({kBegin, kStore, kClusterBarrier, R"(
  .shared .align 4 .b8 nothing[4];
  ld.shared.u32 %r12, [nothing];
  mapa.shared::cluster.u32 %r10, %r4, %r3;
  st.shared::cluster.u32 [%r10], %r12;)",
                      kClusterBarrier, R"(
  ld.shared.u32 %r11, [%r4];
  setp.eq.u32 %p1, %r11, 0;
  @%p1 st.global.u32 [%out], 1;)"}));
  in_clusters(2, 2);
  EXPECT_THAT(kinds(result), ElementsAre(FindingKind::uninitialised));
}

// The second block stores into the first one's memory and arrives at its mbarrier.
TEST_F(ClusterTest, MbarriersOfOtherBlocks) {
  load_kernel(joined({kBegin, R"(
  .shared .align 8 .b8 full[8];
  setp.eq.u32 %p1, %t, 0;
  setp.eq.u32 %p2, %r2, 0;
  @%p1 mbarrier.init.shared.b64 [full], 32;
  fence.mbarrier_init.release.cluster;)",
                      kClusterBarrier, R"(
  @%p2 bra wait;
  mapa.shared::cluster.u32 %r10, %r4, 0;
  st.shared::cluster.u32 [%r10], %r7;
  mov.u32 %r12, full;
  mapa.shared::cluster.u32 %r13, %r12, 0;
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13];
  bra end;
wait:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [full], 0;
  @!%p3 bra wait;
  ld.shared.u32 %r11, [%r4];
  st.global.u32 [%out], %r11;
end:)",
                      kClusterBarrier}));
  const std::vector<std::uint32_t> out = in_clusters(2, 2);
  EXPECT_EQ(result.status, LaunchStatus::ok);
  EXPECT_THAT(descriptions(), IsEmpty());
  EXPECT_EQ(out[5], 32u + 5);
}

TEST_F(ClusterTest, AClusterOfOneBlock) {
  load_kernel(joined({kBegin, kStore, kClusterBarrier, kReadNext, kClusterBarrier}));
  EXPECT_EQ(run(32), each_lane(32, [](std::uint32_t l) { return l; }));
}

TEST_F(ClusterTest, MoreBlocksThanRunAtOnce) {
  load_kernel(joined({kBegin, kStore, kClusterBarrier, kReadNext, kClusterBarrier}));
  const std::vector<std::uint32_t> out = in_clusters(4000, 2);
  EXPECT_THAT(descriptions(), IsEmpty());
  EXPECT_EQ(out[32 * 3999], 399800u);
}

TEST_F(ClusterTest, ConfigurationsThatAreRefused) {
  load_kernel(joined({kBegin, kStore}));
  in_clusters(3, 2);
  EXPECT_EQ(result.status, LaunchStatus::invalid_configuration);
  in_clusters(17, 17);
  EXPECT_EQ(result.status, LaunchStatus::invalid_configuration);
  in_clusters(16, 16);
  EXPECT_EQ(result.status, LaunchStatus::ok);
}

TEST_F(ClusterTest, ClustersThatTheKernelRequires) {
  load(R"(.visible .entry k(.param .u64 out) .explicitcluster .reqnctapercluster 2 {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %cluster_nctarank;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  st.global.u32 [%rd1], %r2;
  ret;
})");
  EXPECT_EQ(device.info(device.kernel(module, "k")).required_cluster, (Dim3{2, 1, 1}));
  const std::uint64_t out = upload(std::vector<std::uint32_t>(4));
  EXPECT_EQ(launch(shape(4, 1), "k", out).status, LaunchStatus::ok);
  EXPECT_THAT(download<std::uint32_t>(out, 4), ElementsAre(2, 2, 2, 2));
  LaunchConfig config = shape(4, 1);
  config.cluster.x = 4;
  EXPECT_EQ(launch(config, "k", out).status, LaunchStatus::invalid_configuration);
  EXPECT_EQ(launch(shape(3, 1), "k", out).status, LaunchStatus::invalid_configuration);
}

}  // namespace
}  // namespace assay::sim
