// cp.async.bulk: when copies read and write, what they count, and what is found in them.
#include "sim/execution/bulk_copies.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "sim/device/device_fixture.h"

namespace assay::sim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class BulkCopyTest : public DeviceTest {};

// %p1: the first thread. %r2: this thread's word of tile.
constexpr std::string_view kBegin = R"(
  .shared .align 128 .b8 tile[256];
  .shared .align 8 .b8 full[16];
  setp.eq.u32 %p1, %t, 0;
  @%p1 mbarrier.init.shared.b64 [full], 1;
  @%p1 mbarrier.init.shared.b64 [full+8], 1;
  mov.u32 %r1, tile;
  mad.lo.u32 %r2, %t, 4, %r1;
  mov.u32 %r3, 256;
  bar.sync 0;
)";
// The first thread fetches 256 bytes into tile.
constexpr std::string_view kFetch = R"(
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], %r3, [full];
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd1, [full], %r3;
)";
constexpr std::string_view kWait = R"(
wait:
  mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
  @!%p2 bra wait;
)";
// Each thread puts its number into tile, and the first one sends the tile to out.
constexpr std::string_view kSend = R"(
  st.shared.u32 [%r2], %t;
  fence.proxy.async;
  bar.sync 0;
  @%p1 cp.async.bulk.global.shared::cta.bulk_group [%base], [tile], %r3;
  @%p1 cp.async.bulk.commit_group;
)";

std::vector<std::uint32_t> numbers(std::uint32_t n) {
  return each_lane(n, [](std::uint32_t i) { return i; });
}

TEST_F(BulkCopyTest, FetchesWhatAnMbarrierCounts) {
  load_kernel(joined({kBegin, kFetch, kWait, R"(
  xor.b32 %r2, %r2, 252;
  ld.shared.u32 %r4, [%r2];
  st.global.u32 [%out], %r4;)"}));
  EXPECT_EQ(run(64, upload(numbers(64))), each_lane(64, [](std::uint32_t l) { return 63 - l; }));
  EXPECT_EQ(result.counters.global_load_bytes, 256u);
  EXPECT_EQ(result.counters.global_load_sectors, 8u);
}

// Addresses in registers of 64 bits, offsets, a policy, and a copy for each of two mbarriers.
TEST_F(BulkCopyTest, FormsOfOperands) {
  load_kernel(joined({kBegin, R"(
  cvt.u64.u32 %rd2, %r1;
  mov.u64 %rd3, full;
  @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint
      [%rd2+16], [%in+32], 16, [%rd3+8], %rd4;
  @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%in+64], 16, [full];
  @%p1 cp.async.bulk.prefetch.L2.global [%in], 128;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd1, [full+8], 16;
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd1, [full], 16;
one:
  mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
  @!%p2 bra one;
two:
  mbarrier.try_wait.parity.shared.b64 %p2, [full+8], 0;
  @!%p2 bra two;
  ld.shared.u32 %r4, [%r2];
  st.global.u32 [%out], %r4;)"}));
  EXPECT_EQ(run(8, upload(numbers(64))),
            (std::vector<std::uint32_t>{16, 17, 18, 19, 8, 9, 10, 11}));
}

TEST_F(BulkCopyTest, AReadThatDoesNotWaitIsARace) {
  load_kernel(joined({kBegin, R"(
  st.shared.u32 [%r2], %t;
  bar.sync 0;)",
                      kFetch, R"(
  setp.ge.u32 %p3, %t, 32;
  @%p3 ld.shared.u32 %r4, [%r2];
  @%p3 exit;)",
                      kWait}));
  const std::uint64_t out = upload(numbers(64));
  const LaunchResult r = launch(shape(1, 64), "k", out, out);
  ASSERT_THAT(kinds(r), ElementsAre(FindingKind::shared_race));
  EXPECT_THAT(r.findings[0].describe(), HasSubstr("no barrier lies between"));
}

// The thread that fetches waits for the readers, but only after it has started the copy.
TEST_F(BulkCopyTest, ACopyIntoWhatOthersStillReadIsARace) {
  const auto kinds_of = [&](const char* before, const char* after) {
    load_kernel(joined({kBegin, R"(
  st.shared.u32 [%r2], %t;
  bar.sync 0;
  setp.ge.u32 %p3, %t, 32;
  @%p3 ld.shared.u32 %r4, [%r2];
)",
                        before, kFetch, after, kWait}));
    const std::uint64_t out = upload(numbers(64));
    return kinds(launch(shape(1, 64), "k", out, out));
  };
  EXPECT_THAT(kinds_of("bar.sync 0;\n", ""), IsEmpty());
  EXPECT_THAT(kinds_of("", "bar.sync 0;\n"), ElementsAre(FindingKind::shared_race));
}

TEST_F(BulkCopyTest, FetchesWithoutEnd) {
  load_kernel(joined({kBegin, R"(
  mov.u32 %r4, 0;
again:
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], %r3, [full];
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p3, %r4, 20000;
  @%p3 bra again;)"}));
  run(64, upload(numbers(64)));
  EXPECT_EQ(result.counters.global_load_bytes, 20000u * 256);
}

// As cuda::memcpy_async does where every thread calls it for itself.
TEST_F(BulkCopyTest, ThatWriteOnePlaceRaceUnlessTheyWriteTheSame) {
  const auto fetched = [&](const char* step) {
    load_kernel(joined({kBegin, "mad.wide.u32 %in, %t, ", step, R"(, %in;
  and.b32 %r4, %t, 31;
  setp.eq.u32 %p1, %r4, 0;
  @!%p1 bra wait;
  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], %r3;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], %r3, [full];
  setp.eq.u32 %p1, %t, 32;
  @%p1 mbarrier.arrive.shared.b64 %rd1, [full];)",
                        kWait}));
    return launch(shape(1, 64), "k", upload(numbers(64)), upload(numbers(128)));
  };
  LaunchResult r = fetched("0");
  EXPECT_THAT(r.findings, IsEmpty());
  EXPECT_EQ(r.notes.size(), 1u);
  r = fetched("1");
  EXPECT_THAT(kinds(r), ElementsAre(FindingKind::shared_race));
}

TEST_F(BulkCopyTest, NamesAnMbarrierInSharedMemory) {
  const auto fetched = [&](const char* object) {
    load_kernel(joined({kBegin, "mov.u32 %r5, full;\n", object, R"(
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], %r3, [%r5];
)"}));
    const std::uint64_t out = upload(numbers(64));
    return kinds(launch(shape(1, 64), "k", out, out));
  };
  EXPECT_THAT(fetched("add.u32 %r5, %r5, 4;"), ElementsAre(FindingKind::misaligned));
  EXPECT_THAT(fetched("add.u32 %r5, %r5, 16;"), ElementsAre(FindingKind::out_of_bounds));
}

TEST_F(BulkCopyTest, SendsWhenTheGroupIsWaitedFor) {
  load_kernel(joined({kBegin, kSend, "@%p1 cp.async.bulk.wait_group 0;"}));
  EXPECT_EQ(run(64), numbers(64));
  EXPECT_EQ(result.counters.global_store_sectors, 8u);
}

TEST_F(BulkCopyTest, SendsAtTheEndOfTheBlockWhatNobodyWaitedFor) {
  load_kernel(joined({kBegin, kSend}));
  EXPECT_EQ(run(64), numbers(64));
}

// The source is overwritten after a wait that covers all groups, or not the one of the copy.
TEST_F(BulkCopyTest, ReadsTheSourceNoEarlierThanTheProgramWaits) {
  const auto sent = [&](const char* wait) {
    load_kernel(joined({kBegin, kSend, "@%p1 cp.async.bulk.commit_group;\n", wait, R"(
  bar.sync 0;
  st.shared.u32 [%r2], 7;)"}));
    const std::uint64_t out = upload(std::vector<std::uint32_t>(64));
    const LaunchResult r = launch(shape(1, 64), "k", out, out);
    return std::pair(kinds(r), download<std::uint32_t>(out, 64));
  };
  const std::pair right(std::vector<FindingKind>(), numbers(64));
  const std::pair overwritten(std::vector{FindingKind::shared_race},
                              std::vector<std::uint32_t>(64, 7));
  EXPECT_EQ(sent("@%p1 cp.async.bulk.wait_group.read 0;"), right);
  EXPECT_EQ(sent("@%p1 cp.async.bulk.wait_group.read 1;"), right) << "the second is empty";
  EXPECT_EQ(sent("@%p1 cp.async.bulk.wait_group.read 2;"), overwritten);
  EXPECT_EQ(sent(""), overwritten);
  EXPECT_EQ(sent("@!%p1 cp.async.bulk.wait_group 0;"), overwritten) << "groups of other threads";
}

TEST_F(BulkCopyTest, OfNothing) {
  load_kernel(joined({kBegin, "mov.u32 %r3, 0;\n", kFetch, kWait, kSend}));
  run(64);
  EXPECT_EQ(result.counters.global_load_bytes + result.counters.global_store_bytes, 0u);
}

TEST_F(BulkCopyTest, SendsWithoutEnd) {
  load_kernel(joined({kBegin, kSend, R"(
  mov.u32 %r4, 0;
again:
  @%p1 cp.async.bulk.global.shared::cta.bulk_group [%base], [tile], %r3;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p3, %r4, 10000;
  @%p3 bra again;)"}));
  EXPECT_EQ(run(64), numbers(64));
  EXPECT_EQ(result.counters.global_store_sectors, 8u * 10001);
}

TEST_F(BulkCopyTest, AnUnorderedWriteOfTheSourceIsARace) {
  load_kernel(joined({kBegin, kSend, R"(
  setp.ge.u32 %p3, %t, 32;
  @%p3 st.shared.u32 [%r2], 7;)"}));
  EXPECT_THAT(kinds(run_faulty(64)), Contains(FindingKind::shared_race));
}

TEST_F(BulkCopyTest, BlocksThatSendToOnePlaceRace) {
  load_kernel(joined({kBegin, "add.u32 %t, %t, %ctaid.x;\n", kSend}));
  EXPECT_THAT(kinds(run_faulty(64, 2)), Contains(FindingKind::global_race));
}

TEST_F(BulkCopyTest, UndefinedBytesTravel) {
  load_kernel(joined({kBegin, kFetch, kWait, R"(
  ld.shared.u32 %r4, [%r2];
  setp.eq.u32 %p3, %r4, 5;
  selp.u32 %r4, 1, 2, %p3;
  @%p3 st.global.u32 [%out], %r4;)"}));
  const std::uint64_t out = upload(std::vector<std::uint32_t>(64));
  EXPECT_THAT(launch(shape(1, 64), "k", out, upload(numbers(64))).findings, IsEmpty());
  const LaunchResult r = launch(shape(1, 64), "k", out, device.allocate(256));
  ASSERT_THAT(kinds(r), ElementsAre(FindingKind::uninitialised));
  EXPECT_THAT(r.findings[0].describe(), HasSubstr("decides where to go on"));

  load_kernel(joined({kBegin, kFetch, kWait}));
  EXPECT_THAT(launch(shape(1, 64), "k", out, device.allocate(256)).findings, IsEmpty())
      << "they decide nothing";
}

TEST_F(BulkCopyTest, OutOfBounds) {
  load_kernel(joined({kBegin, kFetch, kWait}));
  const std::uint64_t out = upload(numbers(64));
  LaunchResult r = launch(shape(1, 64), "k", out, out + 16);
  EXPECT_EQ(r.status, LaunchStatus::illegal_address);
  ASSERT_THAT(kinds(r), ElementsAre(FindingKind::out_of_bounds));
  EXPECT_EQ(r.findings[0].thread.thread[0], 0u) << "whatever piece of the copy it is";

  load_kernel(joined({kBegin, "add.u32 %r3, %r3, 16;\n", kSend}));
  r = run_faulty(64);
  EXPECT_EQ(r.status, LaunchStatus::illegal_address);
  EXPECT_THAT(kinds(r), ElementsAre(FindingKind::out_of_bounds));

  load_kernel(joined({kBegin, "mov.u32 %r3, 4096;\n", kSend}));
  EXPECT_THAT(run_faulty(64).findings.at(0).describe(), HasSubstr("shared"));
}

TEST_F(BulkCopyTest, PiecesOf16BytesAtMultiplesOf16) {
  for (const char* change : {"add.u32 %r3, %r3, -8;", "add.s64 %base, %base, 4;"}) {
    load_kernel(joined({kBegin, change, kSend}));
    const LaunchResult r = run_faulty(64);
    EXPECT_EQ(r.status, LaunchStatus::misaligned_address) << change;
    ASSERT_THAT(kinds(r), ElementsAre(FindingKind::misaligned));
    EXPECT_THAT(r.findings[0].describe(), HasSubstr("multiples of 16"));
  }
}

TEST_F(BulkCopyTest, RefusesPartialWrites) {
  load_kernel("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r1], 16, %h1;");
  EXPECT_THROW(run_faulty(), Unsupported);
}

// The words of out, which start as `first`, after 64 threads of each block have put their number
// plus `more` into tile and the first one has sent that with a reduction.
class BulkReductionTest : public BulkCopyTest {
 protected:
  std::vector<std::uint32_t> reduced(const std::string& operation,
                                     const std::vector<std::uint32_t>& first, int more = 0,
                                     std::uint32_t blocks = 1) {
    load_kernel(joined({kBegin, "add.u32 %r4, %t, ", std::to_string(more), R"(;
  st.shared.u32 [%r2], %r4;
  bar.sync 0;
  @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.)",
                        operation, R"( [%base], [tile], %r3;
  @%p1 cp.async.bulk.commit_group;
  @%p1 cp.async.bulk.wait_group 0;)"}));
    const std::uint64_t out = upload(first);
    result = launch(shape(blocks, 64), "k", out, out);
    EXPECT_THAT(kinds(result), IsEmpty());
    return download<std::uint32_t>(out, first.size());
  }
};

TEST_F(BulkReductionTest, AddsWhatEveryBlockSends) {
  const std::vector<std::uint32_t> ones(64, 1);
  EXPECT_EQ(reduced("add.u32", ones, 0, 5),
            each_lane(64, [](std::uint32_t i) { return 1 + 5 * i; }));
  EXPECT_EQ(result.counters.global_store_sectors, 0u);
  EXPECT_GT(result.counters.atomic_sectors, 0u);
}

TEST_F(BulkReductionTest, Operations) {
  const std::vector<std::uint32_t> first(64, 20);
  const auto expect = [&](const char* operation, auto&& f, int more = 0) {
    EXPECT_EQ(reduced(operation, first, more), each_lane(64, f)) << operation;
  };
  expect("min.u32", [](std::uint32_t i) { return std::min(i, 20u); });
  expect(
      "max.s32", [](std::uint32_t i) { return i < 30 ? 20u : i - 10; }, -10);
  expect("inc.u32", [](std::uint32_t i) { return i > 20 ? 21u : 0u; });
  expect("dec.u32", [](std::uint32_t i) { return i < 20 ? i : 19u; });
  expect("and.b32", [](std::uint32_t i) { return i & 20; });
  expect("or.b32", [](std::uint32_t i) { return i | 20; });
  expect("xor.b32", [](std::uint32_t i) { return i ^ 20; });
  // In pairs of words, from -1 on: all but the first carry into their second word.
  EXPECT_EQ(reduced("add.u64", std::vector<std::uint32_t>(64, 0xffffffff)),
            each_lane(64, [](std::uint32_t i) { return i - 1 + (i > 1 ? i % 2 : 0); }));
}

TEST_F(BulkReductionTest, AddsFloatsInTheOrderOfBlocks) {
  load_kernel(joined({kBegin, R"(
  mov.u32 %r4, %ctaid.x;
  setp.eq.u32 %p3, %r4, 0;
  selp.f32 %f1, 0f4B800000, 0f3F800000, %p3;
  st.shared.f32 [%r2], %f1;
  bar.sync 0;
  @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%base], [tile], %r3;)"}));
  const std::uint64_t out = upload(std::vector<float>(64, 0.0f));
  // 2^24, to which 1 adds nothing.
  EXPECT_THAT(kinds(launch(shape(4, 64), "k", out, out)), IsEmpty());
  EXPECT_EQ(download<float>(out, 64), std::vector<float>(64, 16777216.0f));
}

TEST_F(BulkReductionTest, Halves) {
  // 1 and 2 in each word, and 3 and -1; a NaN loses.
  const std::vector<std::uint32_t> first(64, 0x40003c00);
  const auto sent = [&](const char* operation, const char* word) {
    load_kernel(joined({kBegin, "st.shared.u32 [%r2], ", word, R"(;
  bar.sync 0;
  @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.)",
                        operation, R"( [%base], [tile], %r3;)"}));
    const std::uint64_t out = upload(first);
    EXPECT_THAT(kinds(launch(shape(1, 64), "k", out, out)), IsEmpty());
    return download<std::uint32_t>(out, 1).front();
  };
  EXPECT_EQ(sent("add.noftz.f16", "0xbc004200"), 0x3c004400u);
  EXPECT_EQ(sent("max.f16", "0xbc004200"), 0x40004200u);
  EXPECT_EQ(sent("min.f16", "0xbc004200"), 0xbc003c00u);
  EXPECT_EQ(sent("min.f16", "0x7e007e00"), 0x40003c00u);
}

TEST_F(BulkReductionTest, OfWordsThatNobodyWrote) {
  load_kernel(joined({kBegin, R"(
  st.shared.u32 [%r2], %t;
  bar.sync 0;
  @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%base], [tile], %r3;)"}));
  const std::uint64_t out = device.allocate(256);
  EXPECT_THAT(kinds(launch(shape(1, 64), "k", out, out)), ElementsAre(FindingKind::uninitialised));
}

// Clusters of 64 threads a block. %r5: the block's rank, %r6: that of the next block. %out: this
// thread's place in the grid.
constexpr std::string_view kCluster = R"(
  mov.u32 %r4, %ctaid.x;
  mad.lo.u32 %r4, %r4, 64, %t;
  mad.wide.u32 %out, %r4, 4, %base;
  mov.u32 %r5, %cluster_ctarank;
  mov.u32 %r7, %cluster_nctarank;
  add.u32 %r6, %r5, 1;
  rem.u32 %r6, %r6, %r7;
  mov.u32 %r9, full;
  mapa.shared::cluster.u32 %r10, %r1, %r6;
  mapa.shared::cluster.u32 %r11, %r9, %r6;
  mapa.shared::cluster.u32 %r12, %r2, %r6;
)";
constexpr std::string_view kExpectTile = R"(
  @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd1, [full], %r3;
)";
constexpr std::string_view kReadTile = R"(
  ld.shared.u32 %r20, [%r2];
  st.global.u32 [%out], %r20;
)";

class BulkClusterTest : public BulkCopyTest {
 protected:
  std::vector<std::uint32_t> in_cluster(std::uint32_t blocks, std::uint64_t in) {
    const std::uint64_t out = upload(std::vector<std::uint32_t>(std::size_t{blocks} * 64));
    LaunchConfig config = shape(blocks, 64);
    config.cluster.x = blocks;
    result = launch(config, "k", out, in);
    return download<std::uint32_t>(out, std::size_t{blocks} * 64);
  }
  // As the first, which must have no finding.
  std::vector<std::uint32_t> right_in_cluster(std::uint32_t blocks, std::uint64_t in = 0) {
    auto out = in_cluster(blocks, in == 0 ? upload(numbers(64)) : in);
    EXPECT_EQ(result.status, LaunchStatus::ok);
    for (const Finding& f : result.findings) ADD_FAILURE() << f.describe();
    return out;
  }
};

TEST_F(BulkClusterTest, OneFetchForTheBlocksOfAMask) {
  load_kernel(
      joined({kBegin, kCluster, "st.shared.u32 [%r2], 7;\n", kExpectTile, kClusterBarrier, R"(
  setp.eq.and.u32 %p4, %r5, 1, %p1;
  @%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [tile], [%in], %r3, [full], 6;
  setp.eq.u32 %p5, %r5, 0;
  @%p5 bra wait_is_over;)",
              kWait, "wait_is_over:\n", kReadTile, kClusterBarrier}));
  const std::vector<std::uint32_t> out = right_in_cluster(3);
  for (std::uint32_t i = 0; i < 192; ++i) ASSERT_EQ(out[i], i < 64 ? 7 : i % 64) << i;
  EXPECT_EQ(result.counters.global_load_bytes, 256u) << "fetched once";
}

TEST_F(BulkClusterTest, AMaskThatNamesNoBlock) {
  load_kernel(joined({kBegin, kCluster, kClusterBarrier, R"(
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [tile], [%in], %r3, [full], 9;)"}));
  in_cluster(2, upload(numbers(64)));
  ASSERT_THAT(kinds(result), ElementsAre(FindingKind::out_of_bounds));
  EXPECT_THAT(result.findings[0].describe(), HasSubstr("rank 3 in a cluster of 2"));
}

// Each block's tile, 100 times its rank and more, goes to the next block.
constexpr std::string_view kOwnTile = R"(
  .shared .align 128 .b8 own[256];
  mov.u32 %r21, own;
  mad.lo.u32 %r22, %t, 4, %r21;
  mad.lo.u32 %r23, %r5, 100, %t;
  st.shared.u32 [%r22], %r23;
)";

TEST_F(BulkClusterTest, ToTheNextBlock) {
  load_kernel(joined({kBegin, kCluster, kOwnTile, kExpectTile, kClusterBarrier, R"(
  @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
      [%r10], [own], %r3, [%r11];)",
                      kWait, kReadTile, kClusterBarrier}));
  const std::vector<std::uint32_t> out = right_in_cluster(4);
  for (std::uint32_t i = 0; i < 256; ++i) ASSERT_EQ(out[i], (i / 64 + 3) % 4 * 100 + i % 64) << i;
}

TEST_F(BulkClusterTest, IsSeenOnlyByWhomWaits) {
  load_kernel(
      joined({kBegin, kCluster, kOwnTile, "st.shared.u32 [%r2], 7;\n", kExpectTile, kClusterBarrier,
              R"(
  @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
      [%r10], [own], %r3, [%r11];)",
              kClusterBarrier, kReadTile, kClusterBarrier}));
  EXPECT_EQ(in_cluster(2, upload(numbers(64))), std::vector<std::uint32_t>(128, 7));
}

TEST_F(BulkClusterTest, AddsInTheNextBlock) {
  load_kernel(joined({kBegin, kCluster, kOwnTile, "st.shared.u32 [%r2], 1000;\n", kExpectTile,
                      kClusterBarrier, R"(
  @%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32
      [%r10], [own], %r3, [%r11];)",
                      kWait, kReadTile, kClusterBarrier}));
  const std::vector<std::uint32_t> out = right_in_cluster(2);
  for (std::uint32_t i = 0; i < 128; ++i)
    ASSERT_EQ(out[i], 1000 + (i < 64 ? 100 : 0) + i % 64) << i;
}

TEST_F(BulkClusterTest, WordsOfEveryThread) {
  load_kernel(joined({kBegin, kCluster, kExpectTile, kClusterBarrier, R"(
  mad.lo.u32 %r23, %r5, 100, %t;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r12], %r23, [%r11];)",
                      kWait, kReadTile, kClusterBarrier}));
  const std::vector<std::uint32_t> out = right_in_cluster(2);
  for (std::uint32_t i = 0; i < 128; ++i) ASSERT_EQ(out[i], (i < 64 ? 100 : 0) + i % 64) << i;
}

// One thread in four sends a vector of four words: to a generic address, or as two of 64 bits.
TEST_F(BulkClusterTest, Vectors) {
  load_kernel(joined({kBegin, kCluster, kExpectTile, kClusterBarrier, R"(
  cvt.u64.u32 %rd5, %r2;
  cvta.shared.u64 %rd5, %rd5;
  mapa.u64 %rd6, %rd5, %r6;
  cvt.u64.u32 %rd7, %r9;
  cvta.shared.u64 %rd7, %rd7;
  mapa.u64 %rd8, %rd7, %r6;
  and.b32 %r24, %t, 3;
  setp.eq.u32 %p6, %r24, 0;
  add.u32 %r25, %t, 1;
  add.u32 %r26, %t, 2;
  mov.u64 %rd9, {%r25, %r26};
  mov.u64 %rd10, {%t, %r26};
  setp.lt.and.u32 %p7, %t, 32, %p6;
  setp.ge.and.u32 %p8, %t, 32, %p6;
  @%p7 st.async.mbarrier::complete_tx::bytes.v4.b32 [%rd6], {%t, %r25, %r26, %r25}, [%rd8];
  @%p8 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%r12], {%rd9, %rd10}, [%r11];
)",
                      kWait, kReadTile, kClusterBarrier}));
  const std::vector<std::uint32_t> out = right_in_cluster(2);
  constexpr std::uint32_t kFirst[] = {0, 1, 2, 1}, kSecond[] = {1, 2, 0, 2};
  for (std::uint32_t i = 0; i < 128; ++i) {
    const std::uint32_t t = i % 64, base = t / 4 * 4;
    ASSERT_EQ(out[i], base + (t < 32 ? kFirst : kSecond)[t % 4]) << i;
  }
}

TEST_F(BulkClusterTest, SumsOfEveryThreadsWords) {
  load_kernel(
      joined({kBegin, kCluster, "st.shared.u32 [%r2], 0;\n", kExpectTile, kClusterBarrier, R"(
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r10], %t, [%r11];)",
              kWait, kReadTile, kClusterBarrier}));
  const std::vector<std::uint32_t> out = right_in_cluster(2);
  EXPECT_EQ(out[0], 63u * 64 / 2);
  EXPECT_EQ(out[1], 0u);
}

TEST_F(BulkClusterTest, AnMbarrierOfAnotherBlockThanTheDestination) {
  load_kernel(joined({kBegin, kCluster, kOwnTile, kClusterBarrier, R"(
  @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes
      [%r10], [own], %r3, [full];)",
                      kClusterBarrier}));
  in_cluster(2, upload(numbers(64)));
  ASSERT_THAT(kinds(result), ElementsAre(FindingKind::out_of_bounds));
  EXPECT_THAT(result.findings[0].describe(), HasSubstr("an mbarrier in that of another"));
}

TEST_F(BulkClusterTest, BeyondTheNextBlocksMemory) {
  load_kernel(joined({kBegin, kCluster, kClusterBarrier, R"(
  add.u32 %r10, %r10, 65536;
  @%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r10], %t, [%r11];)",
                      kClusterBarrier}));
  in_cluster(2, upload(numbers(64)));
  EXPECT_EQ(result.status, LaunchStatus::illegal_address);
  EXPECT_THAT(kinds(result), ElementsAre(FindingKind::out_of_bounds));
}

// All lanes, again and again, with nobody waiting; their words are undefined.
TEST_F(BulkClusterTest, WordsWithoutEnd) {
  load_kernel(joined({kBegin, kCluster, kClusterBarrier, R"(
  mad.wide.u32 %rd11, %t, 4, %in;
  ld.global.u32 %r23, [%rd11];
  mov.u32 %r24, 0;
again:
  st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r12], %r23, [%r11];
  add.u32 %r24, %r24, 1;
  setp.lt.u32 %p6, %r24, 3000;
  @%p6 bra again;)",
                      kClusterBarrier}));
  in_cluster(2, device.allocate(256));
  EXPECT_EQ(result.status, LaunchStatus::ok);
}

// Each word is read from global memory that nothing has written.
TEST_F(BulkClusterTest, UndefinedWordsTravel) {
  const auto sent = [&](const char* use) {
    load_kernel(joined({kBegin, kCluster, kExpectTile, kClusterBarrier, R"(
  mad.wide.u32 %rd11, %t, 4, %in;
  ld.global.u32 %r23, [%rd11];
  st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r12], %r23, [%r11];)",
                        kWait, "ld.shared.u32 %r20, [%r2];\n", use, kClusterBarrier}));
    in_cluster(2, device.allocate(256));
    return kinds(result);
  };
  EXPECT_THAT(sent(""), IsEmpty());
  EXPECT_THAT(sent("setp.eq.u32 %p6, %r20, 5;\n@%p6 st.global.u32 [%out], 1;\n"),
              ElementsAre(FindingKind::uninitialised));
}

}  // namespace
}  // namespace assay::sim
