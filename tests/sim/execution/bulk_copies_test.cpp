// cp.async.bulk: when copies read and write, what they count, and what is found in them.
#include "sim/execution/bulk_copies.h"

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

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

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

TEST_F(BulkCopyTest, RefusesClustersAndTensors) {
  for (const char* text :
       {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%r1], [%rd1], 16, [%r2], %h1;",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], 16, "
        "[%r3];",
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r1}], [%r2];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16;"}) {
    load_kernel(text);
    EXPECT_THROW(run_faulty(), Unsupported) << text;
  }
}

}  // namespace
}  // namespace assay::sim
